import numpy as np

import fusec


@fusec.kernel(block=8)
def f(x):
    tile = fusec.shared(8, np.float32)
    for i in fusec.grid(16):
        tile[0] = x[i]


f(np.zeros(16))
