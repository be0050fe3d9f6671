import fusec


@fusec.elementwise
def f(x):
    async def square(y):
        return y * y

    return x
