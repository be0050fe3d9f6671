import fusec


@fusec.elementwise
def f(x):
    del x[0]
    return x
