import numpy as np

import fusec

def g(y):
    return y



@fusec.elementwise
def f(x):
    return g(z=x)


f(np.ones(3, "float32"))
