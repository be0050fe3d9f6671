import numpy as np

import fusec


@fusec.elementwise
def f(x):
    for k in enumerate(x):
        x = x + 1
    return x


f(np.ones(3, "float32"))
