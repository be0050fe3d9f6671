import numpy as np

import fusec

x, out = np.arange(4.0), np.zeros(4)


@fusec.kernel
def f(x, out):
    for i in fusec.grid(x.size):
        out[i] = x + 1


f(x, out)
