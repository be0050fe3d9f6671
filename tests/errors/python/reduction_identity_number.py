import numpy as np

import fusec

minmax = fusec.reduction(
    map=lambda x: (x, x),
    combine=lambda a, b: (min(a[0], b[0]), max(a[1], b[1])),
    identity=0,
)
minmax(np.ones(3, "float32"))
