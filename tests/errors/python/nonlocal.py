import fusec


def outer():
    count = 0

    @fusec.elementwise
    def f(x):
        nonlocal count
        count = x
        return x

    return f


outer()
