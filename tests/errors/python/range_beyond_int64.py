import numpy as np

import fusec


@fusec.elementwise
def f(x):
    for i in range(9223372036854775800, 9223372036854775807, 5):
        x = x + i
    return x


f(np.ones(3, np.int64))
