import fusec


@fusec.elementwise
def f(x): ...
