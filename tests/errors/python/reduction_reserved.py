import numpy as np

import fusec

fusec.reduction(map=lambda x, axis: x, combine=lambda a, b: a + b)
