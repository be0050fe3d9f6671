import numpy as np

import fusec


@fusec.elementwise
def f(x):
    return 1 if x == "a" else 0


f(np.ones(3, "float32"))
