import numpy as np

import fusec


@fusec.reduction
def total(a, b, index):
    return a + b
