import numpy as np

import fusec


@fusec.kernel(block=8, bounds="check")
def f(x):
    for i in fusec.grid(16):
        tile = fusec.shared(8, np.float32)
        tile[fusec.thread_index()] = x[i]
        fusec.barrier()
        x[i] = tile[fusec.thread_index() + 1]


f(np.zeros(16))
