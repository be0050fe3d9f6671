import numpy as np

import fusec

SCALES = (1, 2)


@fusec.elementwise
def f(x):
    return SCALES[3] * x


f(np.ones(3, "float32"))
