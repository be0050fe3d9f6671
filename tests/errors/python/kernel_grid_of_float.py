import numpy as np

import fusec


@fusec.kernel
def f(out, n):
    for i in fusec.grid(n):
        out[i] = 1


f(np.ones(3), 2.5)
