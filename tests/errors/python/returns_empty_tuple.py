import numpy as np

import fusec


@fusec.elementwise
def f(x):
    return ()


f(np.ones(3, "float32"))
