import numpy as np

import fusec


@fusec.stencil(boundary=("nearest", "wrap"))
def f(a):
    return a[0, 0, 1]


f(np.ones((2, 3, 4)))
