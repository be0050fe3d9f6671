"""Programs of simulations: grids, particles, iterations."""

from __future__ import annotations

import numpy as np

from tests.programs.program import program


@program(lambda rng, n: (rng.integers(0, 2, (n, n + 1)).astype("uint8"),))
def life(cells):
    steps = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
    around = sum(np.roll(cells, step, axis=(0, 1)) for step in steps)
    return ((around == 3) | ((cells == 1) & (around == 2))).astype(cells.dtype)


@program(lambda rng, n: (rng.random((n, n + 1)), 0.1))
def heat_step(u, rate):
    u[1:-1, 1:-1] += rate * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])


@program(lambda rng, n: (rng.random(n), rng.random(n)))
def wave_by_rolls(now, before):
    for _ in range(3):
        after = 2 * now - before + 0.25 * (np.roll(now, 1) - 2 * now + np.roll(now, -1))
        now, before = after, now
    return now, before


@program(lambda rng, n: (rng.normal(size=(n, 3)), rng.random(n)), 1e-11, 1e-12)
def gravity(position, mass):
    apart = position[None] - position[:, None]
    inverse = ((apart**2).sum(-1) + 1e-2) ** -1.5
    return (apart * (mass * inverse)[:, :, None]).sum(1)


@program(lambda rng, n: (rng.normal(size=(n, 3)) + 1j * rng.normal(size=(n, 3)),))
def mandelbrot(c):
    z, count = np.zeros_like(c), np.zeros_like(c, dtype="int32")
    for _ in range(6):
        inside = z.real * z.real + z.imag * z.imag <= 4
        z = np.where(inside, z * z + c, z)
        count = count + inside
    return count


@program(lambda rng, n: (rng.random((n, n)), rng.random((n, n))), 1e-13)
def gray_scott(u, v):
    def laplacian(x):
        around = np.pad(x, 1, mode="wrap")
        return around[2:, 1:-1] + around[:-2, 1:-1] + around[1:-1, 2:] + around[1:-1, :-2] - 4 * x

    rate = u * v * v
    return u + 0.16 * laplacian(u) - rate + 0.06 * (1 - u), v + 0.08 * laplacian(v) + rate - 0.12 * v


@program(lambda rng, n: (rng.normal(size=n), rng.normal(size=n), 0.05), 1e-13)
def pendulums(angle, speed, step):
    energy = []
    for _ in range(3):
        speed = speed - step * np.sin(angle)
        angle = angle + step * speed
        energy.append((speed**2 / 2 - np.cos(angle)).sum())
    return angle, speed, np.stack(energy)


@program(lambda rng, n: (rng.normal(size=2 * n), np.sort(rng.random(2 * n))), 1e-12, 1e-14)
def slopes_and_areas(y, x):
    return np.gradient(y, 0.5), np.diff(y, prepend=0.0), np.trapezoid(y, x), np.interp(x * 0.9, x, y)


@program(lambda rng, n: (rng.integers(1, 2**32, n, dtype="uint64"),))
def xorshift(state):
    draws = []
    for _ in range(3):
        state = state ^ (state << 13)
        state = state ^ (state >> 7)
        state = state ^ (state << 17)
        draws.append(np.bitwise_count(state))
    return state, np.stack(draws, axis=1)
