import fusec


@fusec.elementwise
def f(x, weights=[]):
    return x
