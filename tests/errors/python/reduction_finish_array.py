import numpy as np

import fusec


@fusec.reduction(map=lambda x, y: x * y, finish=lambda total, y: total / y)
def dot(a, b):
    return a + b


dot(np.ones(3, "float32"), np.ones(3, "float32"))
