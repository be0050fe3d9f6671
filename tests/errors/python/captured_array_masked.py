import numpy as np

import fusec

TABLE = np.ma.masked_array([1.0, 2.0], [False, True])


@fusec.elementwise
def f(i):
    return TABLE[i]


f(np.arange(2))
