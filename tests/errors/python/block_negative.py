import fusec


@fusec.kernel(block=(16, -16))
def f(x):
    for i, j in fusec.grid(x.shape):
        x[i, j] = 1
