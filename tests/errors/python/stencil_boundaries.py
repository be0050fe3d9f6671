import numpy as np

import fusec


@fusec.stencil(boundary=("skip", "wrap"))
def f(a):
    return a[1]
