import numpy as np

import fusec


@fusec.elementwise
def f(x):
    return np.interp(x, (1, 0), (1, 2))


f(np.ones(3))
