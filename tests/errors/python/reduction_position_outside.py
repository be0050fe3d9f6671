import numpy as np

import fusec

fusec.reduction(
    map=lambda x, indices: (x, indices[1]),
    combine=lambda a, b: a if a[0] > b[0] else b,
)(np.ones(3, "float32"))
