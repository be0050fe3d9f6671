import numpy as np

import fusec

x, out = np.arange(4.0), np.zeros(4)


@fusec.kernel
def f(x, out):
    for i in fusec.grid(4):
        t = fusec.local(4, np.float64)
        out[i] = t[4] + x[i]


f(x, out)
