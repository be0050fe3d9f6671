import numpy as np

import fusec


@fusec.kernel(block=8)
def f(x, n):
    for i in fusec.grid(16):
        if i >= n:
            continue
        fusec.barrier()
        x[i] = 1


f(np.zeros(16), 13)
