import numpy as np

import fusec


@fusec.elementwise
def f(x: 'foat32'):
    return x


f(np.ones(3, "float32"))
