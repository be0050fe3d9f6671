"""The Ising model: spins on a square lattice, flipped at random (Metropolis), as on a chessboard white before black.

Above the critical temperature the spins forget each other, below it they align. Prints the magnetisation for some
temperatures beside Onsager's exact one, and writes ising.png, a lattice at the critical temperature.
"""

from time import perf_counter

import numpy as np
from PIL import Image

import fusec

CRITICAL = 2 / np.log(1 + np.sqrt(2))


@fusec.kernel
def flip(spins, temperature, colour, key, step):
    """Try every spin of one colour once; its four neighbours have the other one, so that none of them changes."""
    rows, columns = spins.shape
    for i, half in fusec.grid((rows, columns // 2)):
        j = 2 * half + (i + colour) % 2
        around = spins[(i + 1) % rows, j] + spins[(i + rows - 1) % rows, j]
        around += spins[i, (j + 1) % columns] + spins[i, (j + columns - 1) % columns]
        cost = np.float32(2 * spins[i, j] * around)
        if fusec.random.uniform32(key, i * columns + j, step) < np.exp(-cost / np.float32(temperature)):
            spins[i, j] = -spins[i, j]


def simulate(size: int, temperature: float, sweeps: int, spins: np.ndarray | None = None) -> np.ndarray:
    """A lattice after some sweeps, from all spins up."""
    spins = np.ones((size, size), np.int32) if spins is None else spins
    for sweep in range(sweeps):
        flip(spins, temperature, 0, 42, 2 * sweep)
        flip(spins, temperature, 1, 42, 2 * sweep + 1)
    return spins


start, total = perf_counter(), 0
print("temperature  magnetisation  Onsager")
for temperature in (1.8, 2.2, 3.5):
    spins = simulate(256, temperature, 200)
    total += 200 * spins.size
    exact = (1 - np.sinh(2 / temperature) ** -4) ** 0.125 if temperature < CRITICAL else 0.0
    found = abs(spins.mean())
    print(f"{temperature:11.2f}  {found:13.3f}  {exact:7.3f}")
    assert abs(found - exact) < 0.06, "the lattice is finite, and so is the time"
print(f"{total / (perf_counter() - start) / 1e6:.0f} million spins a second")

spins = simulate(512, float(CRITICAL), 200)
Image.fromarray(((spins + 1) * 127).astype(np.uint8)).save("ising.png")
print("ising.png: 512 x 512 spins at the critical temperature, clusters of all sizes")
