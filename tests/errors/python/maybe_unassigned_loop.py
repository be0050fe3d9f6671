import numpy as np

import fusec


@fusec.elementwise
def f(x, n):
    for k in range(n):
        y = x * k
    return y


f(np.ones(3), 2)
