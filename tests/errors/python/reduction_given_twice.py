import numpy as np

import fusec


@fusec.reduction(combine=lambda a, b: a * b)
def total(a, b):
    return a + b
