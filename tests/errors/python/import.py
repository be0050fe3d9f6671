import numpy as np

import fusec


@fusec.elementwise
def f(x):
    import math
    return math.sin(x)
