import fusec

fusec.elementwise("def f(x):\n\tif x > 0:\n\t\treturn x\n            return -x\n")
