import numpy as np

import fusec


@fusec.kernel(block=8)
def f(x):
    for i in fusec.grid(16):
        x[i] = fusec.thread_index(0)


f(np.zeros(16))
