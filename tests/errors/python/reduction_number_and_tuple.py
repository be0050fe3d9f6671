import numpy as np

import fusec


@fusec.reduction
def moments(a, b):
    return a + b, a * b


moments(np.ones(3, "float32"))
