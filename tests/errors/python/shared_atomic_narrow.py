import numpy as np

import fusec


@fusec.kernel(block=8)
def f(x):
    for i in fusec.grid(16):
        counts = fusec.shared(8, np.int8)
        counts[fusec.thread_index()] = 0
        fusec.barrier()
        fusec.atomic_add(counts, 3, 1)
        x[i] = counts[0]


f(np.zeros(16))
