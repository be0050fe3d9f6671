import numpy as np

import fusec

x, out = np.arange(4.0), np.zeros(4)


@fusec.kernel
def f(x, out):
    for i, j in fusec.grid(4, 4):
        out[i] = x[j]


f(x, out)
