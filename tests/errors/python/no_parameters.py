import numpy as np

import fusec


@fusec.elementwise
def f():
    return 1
