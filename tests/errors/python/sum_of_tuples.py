import numpy as np

import fusec


@fusec.elementwise
def f(x):
    t = (x, 1) + (2,)
    return t[2]


f(np.ones(3, "float32"))
