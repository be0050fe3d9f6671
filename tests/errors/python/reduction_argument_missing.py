import numpy as np

import fusec

dot = fusec.reduction(map=lambda x, y: x * y, combine=lambda a, b: a + b)
dot(np.ones(3, "float32"))
