import numpy as np

import fusec


@fusec.reduction
class total:
    def map(self, x):
        return x

    def combine(self, a, b):
        return a + b
