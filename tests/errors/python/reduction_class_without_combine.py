import numpy as np

import fusec


@fusec.reduction
class total:
    identity = 0

    def map(x):
        return x
