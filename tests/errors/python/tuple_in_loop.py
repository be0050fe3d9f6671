import numpy as np

import fusec


@fusec.elementwise
def f(x):
    p = (x, x)
    for k in range(3):
        p = (p[1], p[0])
    return p[0]


f(np.ones(3, "float32"))
