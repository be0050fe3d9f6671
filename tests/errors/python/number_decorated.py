import fusec

fusec.elementwise(lambda x: x + 1)
