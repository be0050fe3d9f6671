import numpy as np

import fusec

TABLE = np.arange(5000)


@fusec.elementwise
def f(i):
    return TABLE[i]


f(np.arange(3))
