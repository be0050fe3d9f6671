import fusec


@fusec.kernel(block=(64, 32))
def f(x):
    for i, j in fusec.grid(x.shape):
        x[i, j] = 1
