import fusec


@fusec.elementwise
def f(x):
    try:
        x = 1 / x
    except* ZeroDivisionError:
        x = 0.0
    return x
