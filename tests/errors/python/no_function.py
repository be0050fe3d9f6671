import fusec

fusec.elementwise("x * 2")
