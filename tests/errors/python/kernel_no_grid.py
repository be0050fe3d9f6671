import numpy as np

import fusec

x, out = np.arange(4.0), np.zeros(4)


@fusec.kernel
def f(x, out):
    out[0] = x[0]


f(x, out)
