import numpy as np

import fusec


@fusec.elementwise
def f(x):
    for k in reversed(x):
        x = x * k
    return x


f(np.ones(3, "float32"))
