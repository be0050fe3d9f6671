import numpy as np

import fusec


@fusec.elementwise
def f(x, y):
    return x < y


f(np.ones(3, complex), 1)
