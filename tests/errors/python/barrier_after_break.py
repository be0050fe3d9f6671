import numpy as np

import fusec


@fusec.kernel(block=8)
def f(x):
    for i in fusec.grid(16):
        for k in range(4):
            fusec.barrier()
            if x[i] > k:
                break
            x[i] += 1


f(np.zeros(16))
