import numpy as np

import fusec


@fusec.stencil(cval="zero")
def f(a):
    return a[1]
