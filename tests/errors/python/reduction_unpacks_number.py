import numpy as np

import fusec


@fusec.reduction
def moments(a, b):
    n, mean = a
    return n, mean


moments(np.ones(3, "float32"))
