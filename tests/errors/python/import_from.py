import numpy as np

import fusec


@fusec.elementwise
def f(x):
    from math import sin
    return sin(x)
