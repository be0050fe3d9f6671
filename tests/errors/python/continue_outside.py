import fusec

fusec.elementwise("def f(x):\n    continue\n")(1.0)
