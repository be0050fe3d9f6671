import numpy as np

import fusec

fusec.reduction(map=lambda: 1, combine=lambda a, b: a + b)
