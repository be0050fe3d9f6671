"""Vectors of 1000 correlated normal numbers, drawn by their Cholesky factor with lazy arrays.

The squared Mahalanobis distance of such a vector has the mean 1000 and the variance 2000. Prints its mean over the
draws, and the time beside NumPy's. The argument is how many thousands are drawn; 20 is the default.
"""

import sys
from time import perf_counter

import numpy as np

import fusec.xp as xp

PARTS, PART, SIZE, KEY = int(sys.argv[1]) if len(sys.argv) > 1 else 20, 1000, 1000, 2026
COUNT = PARTS * PART

mixed = xp.random.normal((SIZE, SIZE), KEY, scale=SIZE**-0.5)
covariance = mixed @ mixed.T + xp.eye(SIZE)
mean = xp.linspace(-1, 1, SIZE)
factor = xp.linalg.cholesky(covariance).compute()  # shared by all draws
print(xp.explain(xp.random.multivariate_normal(PART, KEY, mean, factor=factor)))


def with_fusec(start: int) -> xp.Array:
    """The vectors from number `start` on: the same vectors as in one draw of all."""
    return xp.random.multivariate_normal(PART, KEY, mean, factor=factor, offset=start, stream=1).compute()


generator = np.random.default_rng(KEY)
lower, middle = np.asarray(factor), np.asarray(mean)


def with_numpy(_: int) -> np.ndarray:
    """The same number of vectors."""
    return generator.standard_normal((PART, SIZE)) @ lower.T + middle


def best(draw) -> float:
    """Milliseconds of the fastest of a few draws."""
    times = []
    for start in range(5):
        before = perf_counter()
        draw(start)
        times.append(perf_counter() - before)
    return 1e3 * min(times)


total, inverse = 0.0, xp.asarray(np.linalg.inv(lower))
for start in range(0, COUNT, PART):
    apart = (with_fusec(start) - mean) @ inverse.T
    total += float(xp.sum(apart * apart))
error = (2 * SIZE / COUNT) ** 0.5
print(f"squared Mahalanobis distance of {COUNT:,} draws: {total / COUNT:.2f}, known 1000 +- {error:.2f}")
assert abs(total / COUNT - SIZE) < 5 * error
print(f"{PART} draws: fusec {best(with_fusec):.1f} ms   NumPy {best(with_numpy):.1f} ms")
