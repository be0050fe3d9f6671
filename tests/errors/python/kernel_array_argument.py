import numpy as np

import fusec

x, out = np.arange(4.0), np.zeros(4)


def first(y):
    return y[0]


@fusec.kernel
def f(x, out):
    for i in fusec.grid(4):
        out[i] = first(x) + x[i]



f(x, out)
