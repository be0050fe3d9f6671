import numpy as np

import fusec


@fusec.elementwise
def f(x):
    async def g():
        pass
    return x
