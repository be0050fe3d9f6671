import fusec


@fusec.elementwise
def f(x):
    try:
        y = 1 / x
    finally:
        y = 0
    return y
