import numpy as np

import fusec


@fusec.elementwise
def f(x):
    return np.maximum(*(x, x))
