import fusec


@fusec.elementwise
def f(x):
    assert x > 0, f"{x} is not positive"
    return x
