import numpy as np

import fusec


@fusec.kernel
def f(out, n):
    for i, j in fusec.grid((n, 2 * n)):
        out[i, j] = 1


f(np.ones((2, 3)), 2**32)
