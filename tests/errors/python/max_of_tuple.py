import numpy as np

import fusec


@fusec.elementwise
def f(x):
    return max((x, (1, 2)))


f(np.ones(3, "float32"))
