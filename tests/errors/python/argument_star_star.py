import numpy as np

import fusec

OPTIONS = {}


@fusec.elementwise
def f(x):
    return np.sin(x, **OPTIONS)
