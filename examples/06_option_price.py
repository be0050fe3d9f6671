"""Monte Carlo: an Asian option, whose pay-off is of the average price over a year, by random paths that need no state.

Philox makes the numbers of path i and step k from (key, counter, stream) alone, so the price is the same whatever runs
the paths, and in whichever order. Prints the price, its error, and that of the geometric average, which is known.
"""

from math import erf, exp, log, sqrt
from time import perf_counter

import numpy as np

import fusec

SPOT, STRIKE, RATE, VOLATILITY, DAYS = 100.0, 100.0, 0.05, 0.2, 252
DRIFT = (RATE - VOLATILITY * VOLATILITY / 2) / DAYS
SPREAD = VOLATILITY / DAYS**0.5
DISCOUNT = exp(-RATE)


@fusec.kernel
def price_paths(arithmetic, geometric, key):
    """One path for every element; four normal numbers, hence four days, of each counter."""
    for path in fusec.grid(arithmetic.shape[0]):
        height, total, heights = 0.0, 0.0, 0.0
        for step in range(DAYS // 4):
            a, b, c, d = fusec.random.normal32x4(key, path, step)
            for shock in range(4):
                z = a if shock == 0 else b if shock == 1 else c if shock == 2 else d
                height += DRIFT + SPREAD * z
                total += np.exp(height)
                heights += height
        arithmetic[path] = DISCOUNT * max(SPOT * total / DAYS - STRIKE, 0.0)
        geometric[path] = DISCOUNT * max(SPOT * np.exp(heights / DAYS) - STRIKE, 0.0)


def of_geometric_average() -> float:
    """The price that is known: the average of the logarithms is normal (Kemna and Vorst, 1990)."""

    def normal(x: float) -> float:
        return (1 + erf(x / sqrt(2))) / 2

    days = np.arange(1, DAYS + 1)
    mean = log(SPOT) + DRIFT * days.mean()
    deviation = SPREAD * sqrt(((DAYS + 1 - days) ** 2).sum()) / DAYS
    above = (mean - log(STRIKE)) / deviation
    return DISCOUNT * (exp(mean + deviation**2 / 2) * normal(above + deviation) - STRIKE * normal(above))


PATHS = 400_000
arithmetic, geometric = np.zeros(PATHS), np.zeros(PATHS)
price_paths(arithmetic[:1], geometric[:1], 2024)  # compiles
start = perf_counter()
price_paths(arithmetic, geometric, 2024)
elapsed = perf_counter() - start

known, error = of_geometric_average(), geometric.std() / sqrt(PATHS)
rate = PATHS * DAYS / elapsed / 1e6
print(f"{PATHS:,} paths of {DAYS} days in {elapsed:.2f} s: {rate:.0f} million normal numbers a second")
print(f"geometric average: {geometric.mean():.4f} +- {error:.4f}, by the formula {known:.4f}")
spread = (arithmetic - geometric).std() / sqrt(PATHS)
print(f"arithmetic average: {known + (arithmetic - geometric).mean():.4f} +- {spread:.4f}, by the difference")
assert abs(geometric.mean() - known) < 4 * error
