"""The Mandelbrot set: a loop whose length depends on the data, which fusec runs for many points in step.

Writes mandelbrot.png and prints how many points never escape, and the time.
"""

from time import perf_counter

import numpy as np
from PIL import Image

import fusec

mandelbrot = fusec.ElementwiseKernel(
    "float32 x, float32 y, int32 limit",
    "int32 steps",
    """
    float u = 0, v = 0;
    int n_steps = 0;
    while (n_steps < limit && u * u + v * v <= 4) {
        float next = u * u - v * v + x;
        v = 2 * u * v + y;
        u = next;
        ++n_steps;
    }
    steps = n_steps;
    """,
    "mandelbrot",
)

SIZE, LIMIT = 1024, 200
x = np.linspace(-2.1, 0.7, SIZE, dtype=np.float32)
y = np.linspace(-1.4, 1.4, SIZE, dtype=np.float32)[:, None]
mandelbrot(x, y, LIMIT)  # compiles
start = perf_counter()
steps = mandelbrot(x, y, LIMIT)
elapsed = perf_counter() - start

shade = np.log1p(steps) / np.log1p(LIMIT)
shade[steps == LIMIT] = 0
Image.fromarray((255 * shade).astype(np.uint8)).save("mandelbrot.png")

inside = int((steps == LIMIT).sum())
print(f"{SIZE} x {SIZE} points -> mandelbrot.png in {1e3 * elapsed:.1f} ms")
print(f"{inside} points do not escape within {LIMIT} steps: area about {inside / SIZE**2 * 2.8**2:.3f}")
assert 1.5 < inside / SIZE**2 * 2.8**2 < 1.6, "the area of the set is 1.507 (OEIS A098403), and some points take longer"
