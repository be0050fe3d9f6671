"""What users write, with type hints as mypy --strict and pyright want them: no line is wrong."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import fusec
from fusec import graph

Image = NDArray[np.float32]


@fusec.elementwise
def smooth(x: float, low: float, high: float) -> float:
    t = min(max((x - low) / (high - low), 0.0), 1.0)
    return t * t * (3.0 - 2.0 * t)


@fusec.elementwise(name="polar", fp="contract")
def polar(x: Any, y: Any) -> Any:
    return np.hypot(x, y), np.arctan2(y, x)


@fusec.stencil(boundary="nearest")
def edges(p: Any) -> Any:
    return p[0, 1] - p[0, -1]


@fusec.kernel
def histogram(bins: NDArray[np.int64], x: NDArray[np.float32], width: float) -> None:
    for i in fusec.grid(x.shape[0]):
        fusec.atomic_add(bins, int(x[i] / width), 1)


@fusec.reduction(map=lambda x, y: (x - y) ** 2, identity=0)
def distance(a: float, b: float) -> float:
    return a + b


@fusec.fuse
def normalised(x: Image, eps: float = 1e-6) -> Image:
    scaled: Image = (x - x.mean()) / (x.std() + np.float32(eps))
    return scaled


class Model:
    def __init__(self, weight: Image) -> None:
        self.weight, self.steps = weight, 0

    @fusec.fuse
    def step(self, x: Image, rate: float = 0.1) -> tuple[Image, int]:
        self.steps += 1
        moved = (self.weight - rate * x).astype(np.float32)
        return moved, self.steps


saxpy = fusec.ElementwiseKernel("T a, T x, T y", "T z", "z = a * x + y", "saxpy")
total = fusec.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
running = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0, "running")

photo: Image = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
grey = photo.astype(np.float64)
shaded: NDArray[Any] = smooth(grey, 0.2, 0.8)
number: float = smooth(0.5, 0.2, 0.8)
radius, angle = polar(photo, photo)
same: NDArray[np.float64] = smooth(grey, 0.2, 0.8, out=np.empty_like(grey))
bins: NDArray[np.int64] = np.zeros(4, np.int64)
histogram(bins, photo.reshape(-1), 0.3)
print(edges(photo).shape, edges.source("metal"), smooth.name, smooth.explain(grey, 0.2, 0.8).bytes_moved)
print(distance(photo, shaded, axis=1, keepdims=True).shape, float(distance(photo, shaded)))
print(normalised(photo, eps=1e-3).dtype, normalised.explain(photo), saxpy.source("cuda", {"T": "float32"}))
scaled = saxpy(2.0, photo, photo).clip(0, 1)
rows = total(scaled, axis=1, keepdims=True)[0].sum() + running(photo, axis=0, reverse=True).max()
print(fusec.sum(photo, axis=(0, 1), dtype=np.float64), fusec.softmax(photo, axis=-1).shape, fusec.cumsum([1, 2]))
low, high = fusec.minmax(photo)
print(fusec.evaluate("2*photo + low").shape, fusec.NumExpr("a + b", [("a", float), ("b", float)])(photo, rows))
model = Model(photo)
moved, steps = model.step(photo, rate=0.2)
print(moved.shape, steps + 1, model.step.explain(photo), fusec.fuse(np.hypot)(photo, grey).shape)
print(fusec.sum.explain(photo), fusec.softmax.source("cuda", {"x": "float32"}), fusec.evaluate.explain("photo + 1"))
affine = graph.Graph("affine")
given = affine.input("x", "float32", ("n", 8))
affine.output((2 - given[1:] * 2).sum(axis=1) >= 0, "positive")
print(fusec.evaluate.graph("photo + 1"), normalised.graph(photo), affine.compile()(photo))
print(
    fusec.random.uniform32(7, 3),
    fusec.simulate(smooth, python=True)(grey, 0.2, 0.8),
    fusec.vectorize(lambda x: 2 * x)(4),
)
