import numpy as np

import fusec

x, out = np.arange(4.0), np.zeros(4)


@fusec.kernel
def f(x, out):
    y = out
    for i in fusec.grid(x.size):
        y[i] = x[i] + out[i]


f(x, out)
