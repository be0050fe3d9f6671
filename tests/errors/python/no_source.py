import fusec

names = {}
exec("def f(x): return x", names)
fusec.elementwise(names["f"])
