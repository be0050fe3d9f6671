import numpy as np

import fusec


@fusec.elementwise
def f(x):
    for a, b in zip((1, 2), (1, 2, 3), strict=True):
        x = x + a * b
    return x


f(np.ones(3))
