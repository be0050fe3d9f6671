import numpy as np

import fusec


@fusec.elementwise
def f(x):
    if x > 0:
        return x, x
    return x, x, x


f(np.ones(3, "float32"))
