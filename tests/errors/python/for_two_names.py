import numpy as np

import fusec


@fusec.elementwise
def f(x):
    for a, b in range(3):
        x = x + a
    return x


f(np.ones(3, "float32"))
