import fusec

fusec.elementwise("""
def f(x):
        y = x
    return y
""")
