import numpy as np

import fusec


@fusec.kernel(block=256)
def f(x):
    for i in fusec.grid(len(x)):
        x[i] = 1


f(np.zeros(1000))
