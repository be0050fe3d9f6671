import numpy as np

import fusec


@fusec.elementwise
def f(x):
    with np.errstate(all='ignore'):
        y = 1 / x
    return y
