"""Statistics of a table in one pass: two million rows of red, green and blue, the pixels of a photograph of a retina.

Count, least, greatest, mean and deviation of every column come from one reduction with five results.
"""

from timeit import repeat

import numpy as np
from skimage import data

import fusec


@fusec.reduction
class summary:
    """How many elements are not 0, the least, the greatest, mean and standard deviation."""

    identity = (0, np.inf, -np.inf, 0.0, 0.0)  # of no elements

    def map(x):
        """What one element adds."""
        wide = np.float64(x)
        return x != 0, x, x, wide, wide * wide

    def combine(a, b):
        """What two groups of elements come to."""
        return a[0] + b[0], min(a[1], b[1]), max(a[2], b[2]), a[3] + b[3], a[4] + b[4]

    def finish(total, count):
        """The results; count: of all elements."""
        present, least, greatest, values, squares = total
        mean = values / count
        return present, least, greatest, mean, np.sqrt(squares / count - mean * mean)


table = data.retina().reshape(-1, 3).astype(np.float32)  # rows of pixels, columns of colours
present, least, greatest, mean, deviation = summary(table, axis=0)

kernels = str(summary.explain(table, axis=0)).count("kernel ")
print(f"{kernels} kernels ran: the first reads the table once, the others combine what its chunks have left")

assert np.array_equal(present, np.count_nonzero(table, axis=0))
assert np.array_equal(least, table.min(0))
assert np.array_equal(greatest, table.max(0))
assert np.allclose(mean, table.mean(0, dtype=np.float64), rtol=1e-12)
assert np.allclose(deviation, table.std(0, dtype=np.float64), rtol=1e-9)

print(f"{len(table):,} rows   {'not 0':>9} {'least':>6} {'greatest':>9} {'mean':>9} {'deviation':>10}")
for at, colour in enumerate(("red", "green", "blue")):
    print(f"{colour:<16} {present[at]:>9,} {least[at]:>6.0f} {greatest[at]:>9.0f} {mean[at]:>9.4f}", end="")
    print(f" {deviation[at]:>10.4f}")


def with_numpy(x: np.ndarray) -> list[np.ndarray]:
    """The same, a pass for each number."""
    return [np.count_nonzero(x, 0), x.min(0), x.max(0), x.sum(0, np.float64), np.einsum("ij,ij->j", x, x)]


def best(call) -> float:
    """Milliseconds of the fastest of a few runs."""
    return 1e3 * min(repeat(call, number=1, repeat=10))


print(f"fusec {best(lambda: summary(table, axis=0)):.2f} ms   NumPy {best(lambda: with_numpy(table)):.2f} ms")
