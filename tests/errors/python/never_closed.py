import fusec

fusec.elementwise("def f(x):\n    return (x\n")
