import numpy as np

import fusec


@fusec.elementwise
def f(x):
    return 0 if x == None else x


f(np.ones(3, "float32"))
