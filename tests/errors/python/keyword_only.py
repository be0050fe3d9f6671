import numpy as np

import fusec


@fusec.elementwise
def f(x, *, y=1):
    return x * y
