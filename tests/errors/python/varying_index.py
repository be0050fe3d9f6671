import numpy as np

import fusec

SCALES = (1, 2)


@fusec.elementwise
def f(x):
    return SCALES[x] * x


f(np.ones(3, int))
