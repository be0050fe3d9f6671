import numpy as np

import fusec


@fusec.reduction
class moments:
    def map(x):
        return 1, x, 0.0

    def combine(a, b):
        return a[0] + b[0], a[1] + b[1]


moments(np.ones(3, "float32"))
