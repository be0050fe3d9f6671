import numpy as np

import fusec


@fusec.elementwise
def f(x):
    if x > 0:
        y = x
    return y


f(np.ones(3, "float32"))
