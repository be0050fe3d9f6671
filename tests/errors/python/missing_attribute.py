from types import SimpleNamespace

import numpy as np

import fusec

settings = SimpleNamespace(scale=2)


@fusec.elementwise
def f(x):
    return x * settings.scael


f(np.ones(3, "float32"))
