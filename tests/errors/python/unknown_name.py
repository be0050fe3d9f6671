import numpy as np

import fusec

scale = 2.0


@fusec.elementwise
def f(x):
    return x * scael


f(np.ones(3, "float32"))
