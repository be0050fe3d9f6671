import numpy as np

import fusec


@fusec.elementwise
def f(x):
    y: float | None = x
    return y


f(np.ones(3, "float32"))
