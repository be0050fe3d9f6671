import numpy as np

import fusec


@fusec.elementwise
def f(x, amount=1.0):
    return x * amount


f(np.ones(3), amout=2.0)
