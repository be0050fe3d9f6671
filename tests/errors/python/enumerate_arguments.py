import numpy as np

import fusec


@fusec.elementwise
def f(x):
    for a, b in enumerate((1, 2), first=1):
        x = x + a * b
    return x


f(np.ones(3))
