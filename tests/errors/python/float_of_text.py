import numpy as np

import fusec


@fusec.elementwise
def f(x):
    return x if x > 0 else float("nan")


f(np.ones(3, "float32"))
