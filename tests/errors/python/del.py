import numpy as np

import fusec


@fusec.elementwise
def f(x):
    y = x
    del y
    return x
