import fusec

fusec.elementwise(3)
