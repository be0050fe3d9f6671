import numpy as np

import fusec

fusec.reduction(
    map=lambda x, index: (x, index),
    combine=lambda a, b: a if a[0] > b[0] else b[0],
)(np.ones(3, "float32"))
