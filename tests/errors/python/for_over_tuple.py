import numpy as np

import fusec


@fusec.elementwise
def f(x):
    for k in (1, 2):
        x = x + k
    return x


f(np.ones(3, "float32"))
