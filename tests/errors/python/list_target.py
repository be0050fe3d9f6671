import fusec


@fusec.elementwise
def f(x):
    [a, b] = x, x
    return a + b
