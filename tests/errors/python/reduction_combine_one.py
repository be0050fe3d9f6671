import numpy as np

import fusec


@fusec.reduction
def total(a):
    return a
