import numpy as np

import fusec


@fusec.elementwise
def f(x):
    while x < 3:
        x = x + 1
    else:
        x = 0
    return x
