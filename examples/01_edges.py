"""Edges of a photograph: an 8-neighbour Laplacian, as a kernel that reads its neighbours from a raw array.

Writes edges.png, and prints the CUDA text of the same kernel and the time beside NumPy.
"""

from timeit import repeat

import numpy as np
from PIL import Image
from skimage import data

import fusec

laplacian = fusec.ElementwiseKernel(
    "raw int32 image",
    "int32 edge",
    """
    ptrdiff_t height = image.shape()[0], width = image.shape()[1];
    ptrdiff_t row = i / width, column = i % width;
    edge = 0;  // on the border, where neighbours are missing
    if (row > 0 && row < height - 1 && column > 0 && column < width - 1) {
        for (int down = -1; down <= 1; ++down)
            for (int right = -1; right <= 1; ++right)
                edge += image[i + down * width + right];
        edge -= 9 * image[i];
    }
    """,
    "laplacian",
)


def with_numpy(image: np.ndarray) -> np.ndarray:
    """The same away from the border."""
    rows = image[:-2] + image[1:-1] + image[2:]
    return rows[:, :-2] + rows[:, 1:-1] + rows[:, 2:] - 9 * image[1:-1, 1:-1]


def best(call, number: int = 20) -> float:
    """Milliseconds of the fastest of a few runs."""
    return 1e3 * min(repeat(call, number=number, repeat=5)) / number


image = data.camera().astype(np.int32)
edges = laplacian(image, np.empty_like(image))

assert np.array_equal(edges[1:-1, 1:-1], with_numpy(image)), "not what NumPy computes"
assert not edges[[0, -1]].any(), "the border is not zero"
Image.fromarray(np.clip(abs(edges), 0, 255).astype(np.uint8)).save("edges.png")

print(laplacian.source("cuda"))
print(f"{image.shape[0]} x {image.shape[1]} pixels -> edges.png; NumPy computes exactly the same")
print(f"fusec {best(lambda: laplacian(image, edges)):.3f} ms   NumPy {best(lambda: with_numpy(image)):.3f} ms")
