import numpy as np

import fusec


@fusec.stencil(boundary="reflect")
def f(a):
    return a[0.5, 1]


f(np.ones((2, 3)))
