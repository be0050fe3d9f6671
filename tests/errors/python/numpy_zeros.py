import numpy as np

import fusec


@fusec.elementwise
def f(x):
    return x + np.zeros(3)


f(np.ones(3, "float32"))
