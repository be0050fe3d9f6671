import numpy as np

import fusec


@fusec.elementwise
def f(x):
    return max(x, -x, key=abs)


f(np.ones(3, "float32"))
