import numpy as np

import fusec


@fusec.elementwise
def f(x):
    return x if x > 0 else max(2**64, 1)


f(np.ones(3))
