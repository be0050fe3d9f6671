import numpy as np

import fusec


@fusec.reduction(identity=0)
def total(a, b):
    return a + b


total(np.ones(3, "float32"), dtype=np.float64)
