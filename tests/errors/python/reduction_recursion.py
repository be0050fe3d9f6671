import numpy as np

import fusec


@fusec.reduction
def total(a, b):
    return total(a, b)


total(np.ones(3, "float32"))
