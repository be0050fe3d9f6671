import numpy as np

import fusec


@fusec.reduction(identity=300)
def total(a, b):
    return a + b


total(np.ones(3, "uint8"))
