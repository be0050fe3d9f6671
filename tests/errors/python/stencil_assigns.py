import numpy as np

import fusec


@fusec.stencil(boundary="reflect")
def f(a):
    a[0, 1] = 2
    return a[0, 0]


f(np.ones((2, 3)))
