import numpy as np

import fusec


@fusec.stencil(axes=(0, 3))
def f(a):
    return a[0, 1]


f(np.ones((2, 3)))
