import numpy as np

import fusec


@fusec.kernel(block=8)
def f(x):
    for i in fusec.grid(16):
        k = 0
        while k < x[i]:
            fusec.barrier()
            k += 1


f(np.zeros(16))
