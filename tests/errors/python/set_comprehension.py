import numpy as np

import fusec


@fusec.elementwise
def f(x):
    return len({x * k for k in range(3)})
