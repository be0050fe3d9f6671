import numpy as np

import fusec


@fusec.kernel(block=8)
def f(x):
    for i in fusec.grid(16):
        a = fusec.shared((64, 64), np.float32)
        b = fusec.shared((64, 65), np.float32)
        a[0, i], b[0, i] = x[i], x[i]
        fusec.barrier()
        x[i] = a[0, 0] + b[0, 0]


f(np.zeros(16))
