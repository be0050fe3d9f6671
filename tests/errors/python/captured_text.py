import numpy as np

import fusec

UNIT = "m"


@fusec.elementwise
def f(x):
    return x + UNIT


f(np.ones(3, "float32"))
