import fusec


@fusec.elementwise
def f(x):
    y = yield
    return x + y
