import numpy as np

import fusec


@fusec.elementwise
def f(x):
    y = x


f(np.ones(3, "float32"))
