import numpy as np

import fusec


@fusec.reduction
def total(a: np.float32, b: np.float32):
    return np.sqrt(np.complex64(a * b))


total(np.ones(3, "float32"))
