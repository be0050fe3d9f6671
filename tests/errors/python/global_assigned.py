import fusec

TOTAL = 0


@fusec.elementwise
def f(x):
    global TOTAL
    TOTAL += x
    return x
