import numpy as np

import fusec


@fusec.elementwise
def f(x):
    for k in range(3):
        x = x + k
    else:
        x = x + 1
    return x
