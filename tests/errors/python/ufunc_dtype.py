import numpy as np

import fusec


@fusec.elementwise
def f(x):
    return np.add(x, 1, dtype=np.int32)


f(np.ones(3, "float32"))
