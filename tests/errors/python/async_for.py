import fusec

fusec.elementwise("""
def f(x):
    async for k in x:
        pass
    return x
""")
