import fusec


@fusec.stencil
def f(x):
    return x[*(0, 1)]
