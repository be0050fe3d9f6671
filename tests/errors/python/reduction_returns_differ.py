import numpy as np

import fusec


@fusec.reduction
def total(a, b):
    if a > b:
        return a
    return a, b


total(np.ones(3, "float32"))
