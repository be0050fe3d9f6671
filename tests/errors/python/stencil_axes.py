import numpy as np

import fusec


@fusec.stencil(axes=(0, 0))
def f(a):
    return a[0, 1]
