import numpy as np

import fusec


@fusec.reduction
def least(a, b):
    return min(a, b)


least(np.ones(0))
