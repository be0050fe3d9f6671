import numpy as np

import fusec


@fusec.kernel
def f(x):
    for i in fusec.grid(4):
        y = x


f(1)
