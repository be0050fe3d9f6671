import numpy as np

import fusec


@fusec.kernel(block=8)
def f(x, n):
    for i in fusec.grid(16):
        tile = fusec.shared(n, np.float32)
        tile[0] = x[i]


f(np.zeros(16), 8)
