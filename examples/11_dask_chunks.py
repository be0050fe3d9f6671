"""A dask array whose chunks are lazy arrays: the operations on a chunk are recorded, and run as one plan.

Prints the kernels for a chunk, and the time beside that of NumPy chunks. Needs dask, which the extra `examples` brings.
"""

from time import perf_counter

import dask.array as da
import numpy as np

import fusec.xp as xp

ROWS, COLUMNS, CHUNK = 400_000, 8, 50_000


def scores(chunk):
    """Standardise the columns, and take the log of the sum of exponentials of each row: a few lines of NumPy."""
    scaled = (chunk - np.mean(chunk, axis=0)) / np.std(chunk, axis=0)
    greatest = np.max(scaled, axis=1, keepdims=True)
    return greatest[:, 0] + np.log(np.sum(np.exp(scaled - greatest), axis=1))


def computed(chunk: xp.Array) -> xp.Array:
    """The scores of a lazy array, computed at once in the thread that dask has chosen for the chunk."""
    return scores(chunk).compute()


def best(array: da.Array, function) -> tuple[np.ndarray, float]:
    """The mean scores of each thousand rows, and the milliseconds of the fastest of a few runs."""
    result = array.map_blocks(function, drop_axis=1, dtype="float64").reshape((-1, 1000)).mean(axis=1)
    times = []
    for _ in range(5):
        start = perf_counter()
        found = np.asarray(result.compute())
        times.append(perf_counter() - start)
    return found, 1e3 * min(times)


values = xp.random.normal((ROWS, COLUMNS), 2026).compute()
lazy = da.from_array(values, chunks=(CHUNK, COLUMNS))
plain = da.from_array(np.asarray(values), chunks=(CHUNK, COLUMNS))
print(xp.explain(scores(values[:CHUNK])))

found, taken = best(lazy, computed)
wanted, usual = best(plain, scores)
assert np.allclose(found, wanted, rtol=1e-12)
print(f"{ROWS // CHUNK} chunks: fusec {taken:.1f} ms   NumPy {usual:.1f} ms")
