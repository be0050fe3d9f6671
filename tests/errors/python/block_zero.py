import fusec


@fusec.kernel(block=0)
def f(x):
    for i in fusec.grid(8):
        x[i] = 1
