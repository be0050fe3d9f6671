import fusec

fusec.elementwise("def f(x):\n    break\n    return x\n")(1.0)
