import numpy as np

import fusec


@fusec.elementwise
def f(x):
    if x > 0:
        y = np.int32(1)
    else:
        y = np.float64(x)
    return y


f(np.ones(3, "float32"))
