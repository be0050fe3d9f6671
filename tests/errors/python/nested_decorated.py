import functools

import fusec


@fusec.elementwise
def f(x):
    @functools.cache
    def square(y):
        return y * y

    return square(x)
