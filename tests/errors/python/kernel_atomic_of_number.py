import numpy as np

import fusec

x, out = np.arange(4.0), np.zeros(4)


@fusec.kernel
def f(x, out):
    for i in fusec.grid(4):
        fusec.atomic_add(x[i], 0, out[i])


f(x, out)
