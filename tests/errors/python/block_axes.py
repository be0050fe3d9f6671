import numpy as np

import fusec


@fusec.kernel(block=(4, 4))
def f(x):
    for i in fusec.grid(16):
        x[i] = 1


f(np.zeros(16))
