import fusec

fusec.elementwise("""
def f(x):
    async with x:
        return x
""")
