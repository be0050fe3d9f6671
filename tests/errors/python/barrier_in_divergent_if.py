import numpy as np

import fusec


@fusec.kernel(block=8)
def f(x):
    for i in fusec.grid(16):
        t = fusec.thread_index()
        is_even = t % 2 == 0
        if is_even:
            x[i] = 1
            fusec.barrier()


f(np.zeros(16))
