import numpy as np

import fusec


@fusec.kernel
def f(x):
    for i in fusec.grid(16):
        fusec.barrier()
        x[i] = 1


f(np.zeros(16))
