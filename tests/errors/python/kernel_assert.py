import numpy as np

import fusec


@fusec.kernel(bounds="check")
def f(x):
    for i in fusec.grid(x.size):
        assert x[i] < 2, "small"


f(np.arange(3.0))
