import numpy as np

import fusec


@fusec.elementwise
def f(x):
    return np.sin(x, x)


f(np.ones(3, "float32"))
