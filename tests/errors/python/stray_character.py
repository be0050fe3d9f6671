import fusec

fusec.elementwise("def f(x):\n    return x ? 1 : 2\n")
