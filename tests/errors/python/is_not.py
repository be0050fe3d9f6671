import numpy as np

import fusec


@fusec.elementwise
def f(x):
    return 1 if x is not None else 2
