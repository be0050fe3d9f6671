import fusec


@fusec.kernel(block=True)
def f(x):
    for i in fusec.grid(8):
        x[i] = 1
