"""Statistics of a table in one pass: two million rows of red, green and blue, the pixels of a photograph of a retina.

Count, least, greatest, sum and sum of squares of every column come from one ReductionKernel with five outputs.
"""

from timeit import repeat

import numpy as np
from skimage import data

import fusec

table = data.retina().reshape(-1, 3).astype(np.float32)  # rows of pixels, columns of colours

summary = fusec.ReductionKernel(
    "T x",
    "int64 count, T least, T greatest, float64 total, float64 squares",
    "of(x)",
    "both(a, b)",
    "count = a.count; least = a.least; greatest = a.greatest; total = a.total; squares = a.squares",
    name="summary",
    reduce_type="Summary",
    preamble="""
    struct Summary { long long count; float least; float greatest; double total; double squares; };
    __device__ Summary of(float x) {
        Summary s;
        s.count = x > 0; s.least = x; s.greatest = x; s.total = x; s.squares = (double)x * x;
        return s;
    }
    __device__ Summary both(Summary a, Summary b) {
        Summary s;
        s.count = a.count + b.count;
        s.least = minimum(a.least, b.least); s.greatest = maximum(a.greatest, b.greatest);
        s.total = a.total + b.total; s.squares = a.squares + b.squares;
        return s;
    }
    """,
)

count, least, greatest, total, squares = summary(table, axis=0)
kernels = str(summary.explain(table, axis=0)).count("kernel ")
print(f"{kernels} kernels ran: the first reads the table once, the others combine what its chunks have left")

rows = len(table)
mean, deviation = total / rows, np.sqrt(squares / rows - (total / rows) ** 2)
assert np.array_equal(count, np.count_nonzero(table, axis=0))
assert np.array_equal(least, table.min(0))
assert np.array_equal(greatest, table.max(0))
assert np.allclose(mean, table.mean(0, dtype=np.float64), rtol=1e-12)
assert np.allclose(deviation, table.std(0, dtype=np.float64), rtol=1e-9)
assert np.allclose(fusec.std(table, 0), deviation, rtol=1e-6), "the built-in one, in float32"

print(f"{rows:,} rows   {'not 0':>9} {'least':>6} {'greatest':>9} {'mean':>9} {'deviation':>10}")
for at, colour in enumerate(("red", "green", "blue")):
    print(f"{colour:<16} {count[at]:>9,} {least[at]:>6.0f} {greatest[at]:>9.0f} {mean[at]:>9.4f}", end="")
    print(f" {deviation[at]:>10.4f}")


def with_numpy(x: np.ndarray) -> list[np.ndarray]:
    """The same, a pass for each number."""
    return [np.count_nonzero(x, 0), x.min(0), x.max(0), x.sum(0, np.float64), np.einsum("ij,ij->j", x, x)]


def best(call) -> float:
    """Milliseconds of the fastest of a few runs."""
    return 1e3 * min(repeat(call, number=1, repeat=10))


print(f"fusec {best(lambda: summary(table, axis=0)):.2f} ms   NumPy {best(lambda: with_numpy(table)):.2f} ms")
