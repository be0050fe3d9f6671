import numpy as np

import fusec


@fusec.elementwise
def f(x):
    return x * q


f(np.ones(3, "float32"))
