import numpy as np

import fusec


@fusec.elementwise
def f(x, y):
    return x + y


import ml_dtypes  # noqa: E402

f(np.ones(3, ml_dtypes.float8_e5m2), np.ones(3, ml_dtypes.float8_e4m3fn))
