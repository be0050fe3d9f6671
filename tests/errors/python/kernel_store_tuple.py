import numpy as np

import fusec

x, out = np.arange(4.0), np.zeros(4)


@fusec.kernel
def f(x, out):
    for i in fusec.grid(4):
        out[i] = x[i], 1


f(x, out)
