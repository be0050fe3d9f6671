"""Edges of a photograph: how steeply the brightness changes around every pixel, by Sobel's weights.

Prints the CUDA text of the function and its time beside NumPy and SciPy, and writes edges.png: photograph and edges.
"""

from timeit import repeat

import numpy as np
from PIL import Image
from scipy import ndimage
from skimage import data

import fusec


@fusec.stencil(boundary="nearest")
def edges(p):
    """How steeply the brightness changes around a pixel: Sobel's weights."""
    right = p[-1, 1] + 2 * p[0, 1] + p[1, 1]
    left = p[-1, -1] + 2 * p[0, -1] + p[1, -1]
    above = p[-1, -1] + 2 * p[-1, 0] + p[-1, 1]
    below = p[1, -1] + 2 * p[1, 0] + p[1, 1]
    return np.sqrt((right - left) ** 2 + (below - above) ** 2)


def with_scipy(p: np.ndarray) -> np.ndarray:
    """The same."""
    return np.sqrt(ndimage.sobel(p, 1, mode="nearest") ** 2 + ndimage.sobel(p, 0, mode="nearest") ** 2)


def with_numpy(p: np.ndarray) -> np.ndarray:
    """The same, without the pixels at the border."""
    columns = p[:-2] + 2 * p[1:-1] + p[2:]  # the weights of right and left
    rows = p[:, :-2] + 2 * p[:, 1:-1] + p[:, 2:]  # those of above and below
    return np.sqrt((columns[:, 2:] - columns[:, :-2]) ** 2 + (rows[2:] - rows[:-2]) ** 2)


def best(call, number: int = 20) -> float:
    """Milliseconds of the fastest of a few runs."""
    return 1e3 * min(repeat(call, number=number, repeat=5)) / number


photo = data.camera().astype(np.float32)  # 512 x 512 numbers from 0 to 255
steep = edges(photo)

assert np.array_equal(steep, with_scipy(photo)), "not what SciPy computes"
assert np.array_equal(steep[1:-1, 1:-1], with_numpy(photo)), "not what NumPy computes"

both = np.hstack([photo, np.minimum(steep / 2, 255)])
half = both.reshape(256, 2, 512, 2).mean(axis=(1, 3))  # of the size
Image.fromarray((half / 8).astype(np.uint8) * 8).save("edges.png", optimize=True)

print(edges.source("cuda"))
print("512 x 512 pixels -> edges.png; SciPy and NumPy compute exactly the same")
times = f"fusec {best(lambda: edges(photo)):.3f} ms   NumPy {best(lambda: with_numpy(photo)):.3f} ms"
print(f"{times}   SciPy {best(lambda: with_scipy(photo)):.3f} ms")
