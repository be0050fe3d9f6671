import numpy as np

import fusec


@fusec.reduction(finish=lambda total, number: total / number)
def mean(a, b):
    return a + b
