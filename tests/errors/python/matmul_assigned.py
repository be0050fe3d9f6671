import fusec


@fusec.elementwise
def f(x):
    x @= x
    return x
