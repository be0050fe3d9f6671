import numpy as np

import fusec


@fusec.stencil(boundary="skip")
def f(a, k):
    return a[k]


f(np.ones(3), 1)
