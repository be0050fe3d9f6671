import fusec

fusec.elementwise(len)
