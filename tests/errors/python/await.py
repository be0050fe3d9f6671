import fusec

fusec.elementwise("""
def f(x):
    return await x
""")
