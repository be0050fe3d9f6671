import numpy as np

import fusec


@fusec.kernel(block=1024)
def f(x):
    for i in fusec.grid(1024):
        own = fusec.local(64, np.float64)
        own[i % 64] = x[i]
        fusec.barrier()
        x[i] = own[63 - i % 64]


f(np.zeros(1024))
