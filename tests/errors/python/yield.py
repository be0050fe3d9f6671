import numpy as np

import fusec


@fusec.elementwise
def f(x):
    yield x
