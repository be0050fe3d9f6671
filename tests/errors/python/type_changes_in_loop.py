import numpy as np

import fusec


@fusec.elementwise
def f(x):
    y = np.int32(0)
    for k in range(3):
        y = y + x
    return y


f(np.ones(3, "float32"))
