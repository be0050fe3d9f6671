import numpy as np

import fusec

fusec.reduction(combine=lambda a, b: a + b, finish=lambda: 1)
