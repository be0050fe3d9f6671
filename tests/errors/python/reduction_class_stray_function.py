import numpy as np

import fusec


@fusec.reduction
class mean:
    def combine(a, b):
        return a + b

    def finsh(total, count):
        return total / count
