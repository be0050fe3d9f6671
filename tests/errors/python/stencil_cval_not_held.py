import numpy as np

import fusec


@fusec.stencil(cval=2.5)
def f(a):
    return a[-1]


f(np.ones(2, np.int64))
