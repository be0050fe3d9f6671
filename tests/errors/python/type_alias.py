import fusec

fusec.elementwise("""
def f(x):
    type Number = float
    return x
""")
