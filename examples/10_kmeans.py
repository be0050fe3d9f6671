"""Clusters of points by k-means (Lloyd's algorithm).

Each point joins the nearest centre, and each centre moves to the mean of its points.

Lazy arrays never store the distances. Prints the number of steps and the time beside NumPy's, and writes kmeans.png,
which shows the points over the cells of their centres.
"""

from time import perf_counter

import numpy as np
from PIL import Image

import fusec.xp as fxp

COUNT, CLUSTERS, SIZE, KEY = 20_000, 12, 512, 7
COLOURS = np.array([[55 + 200 * (at * k % 12) // 11 for k in (1, 5, 7)] for at in range(CLUSTERS)], np.uint8)


def nearest(xp, points, centres):
    """For each point, the number of the nearest centre and the squared distance from it."""
    right, down = points[:, :1] - centres[:, 0], points[:, 1:] - centres[:, 1]
    squares = right * right + down * down
    return xp.argmin(squares, axis=1), xp.min(squares, axis=1)


def moved(xp, points, centres):
    """The means of the points that are nearest to each centre, and the mean squared distance."""
    chosen, squares = nearest(xp, points, centres)
    belongs = (chosen[None, :] == xp.arange(CLUSTERS)[:, None]).astype("float64")
    count = xp.sum(belongs, axis=1)
    sums = xp.stack([xp.sum(belongs * points[:, axis], axis=1) for axis in (0, 1)], axis=1)
    return xp.where(count[:, None] > 0, sums / count[:, None], centres), xp.mean(squares)


def clustered(xp, points):
    """Lloyd's algorithm, which begins with the first points: the centres, the mean squared distance, the steps."""
    centres, last = points[:CLUSTERS], float("inf")
    for steps in range(1, 200):
        centres, squared = moved(xp, points, centres)
        if not float(squared) < last * (1 - 1e-6):
            return centres, float(squared), steps
        last = float(squared)
    return centres, last, steps


middles = fxp.random.uniform((CLUSTERS, 2), KEY, low=0.1, high=0.9)
own = fxp.random.integers(COUNT, KEY, high=CLUSTERS, stream=1)
points = (middles[own] + fxp.random.normal((COUNT, 2), KEY, scale=0.04, stream=2)).compute()

times = {}
for xp, given in ((fxp, points), (np, np.asarray(points))):
    clustered(xp, given)  # once before the clock starts, which compiles
    start = perf_counter()
    centres, squared, steps = clustered(xp, given)
    times[xp] = 1e3 * (perf_counter() - start)
    print(f"{xp.__name__:8}  {steps} steps, mean squared distance {squared:.6f}, {times[xp]:.0f} ms")

print(fxp.explain(*moved(fxp, points, fxp.asarray(centres))))

axis = (fxp.arange(SIZE) + 0.5) / SIZE
cells = nearest(fxp, fxp.stack([each.reshape(-1) for each in fxp.meshgrid(axis, axis)], axis=1), fxp.asarray(centres))[
    0
]
picture = COLOURS[np.asarray(cells).reshape(SIZE, SIZE)]
columns, rows = np.clip((np.asarray(points) * SIZE).astype(int), 0, SIZE - 1).T
picture[rows, columns] = picture[rows, columns] // 2
Image.fromarray(picture).save("kmeans.png")
print(f"kmeans.png: {COUNT:,} points in {CLUSTERS} cells")
