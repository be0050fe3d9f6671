"""Programs of images, signals and arrays that are joined, picked and masked."""

from __future__ import annotations

import numpy as np

from tests.programs.program import program


def _image(rng, n):
    return rng.integers(0, 256, (n, n + 2, 3), dtype="uint8")


@program(lambda rng, n: (_image(rng, n),), 0, 1)
def image_pipeline(image):
    grey = (image.astype("float32") / 255 * np.array([0.299, 0.587, 0.114], "float32")).sum(axis=-1)
    grey = (grey - grey.min()) / (grey.max() - grey.min())
    return np.clip(np.rint(grey ** np.float32(0.5) * 255), 0, 255).astype("uint8")


@program(lambda rng, n: (_image(rng, n)[..., 0],), 1e-14)
def sobel(image):
    x = np.pad(image.astype(float), 1, mode="edge")
    across = x[:-2, 2:] + 2 * x[1:-1, 2:] + x[2:, 2:] - x[:-2, :-2] - 2 * x[1:-1, :-2] - x[2:, :-2]
    down = x[2:, :-2] + 2 * x[2:, 1:-1] + x[2:, 2:] - x[:-2, :-2] - 2 * x[:-2, 1:-1] - x[:-2, 2:]
    return np.hypot(across, down)


@program(lambda rng, n: (_image(rng, n), _image(rng, n), rng.integers(0, 256, (n, n + 2), dtype="uint8")))
def blend(front, back, alpha):
    weight = alpha[..., None].astype("uint16")
    return ((front * weight + back * (255 - weight) + 127) // 255).astype("uint8")


@program(lambda rng, n: (_image(rng, n), rng.permutation(256).astype("uint8")))
def lookup_table(image, table):
    flipped = np.flip(image, axis=1)
    return table[flipped], np.rot90(np.take(table, image[..., 0]))


@program(lambda rng, n: (rng.random((n, 3)),), 1e-13)
def hue(rgb):
    r, g, b = rgb[:, 0], rgb[:, 1], rgb[:, 2]
    high, spread = rgb.max(axis=1), np.ptp(rgb, axis=1)
    found = np.select([high == r, high == g], [(g - b) / spread, 2 + (b - r) / spread], 4 + (r - g) / spread)
    return (found / 6) % 1


@program(lambda rng, n: (rng.normal(size=(n, 4)),), 1e-13)
def where_chain(x):
    a = np.where(x > 1, 1.0, np.where(x < -1, -1.0, x))
    b = np.where((a > 0) & (x < 0.5), a * 2, np.where(a < -0.5, -a, a + 1))
    return np.where(np.isfinite(b), b, 0), (b > 1).any(axis=0)


@program(lambda rng, n: (rng.normal(size=(n, 4)), rng.random((n, 4)) < 0.5), 1e-13, 1e-15)
def masks(x, mask):
    x = x.copy()
    x[mask] = 0
    x[x < -1] *= -1
    return x, x.sum(axis=0, where=~mask), (mask & (x == 0)).sum()


@program(lambda rng, n: (rng.normal(size=(n, 3)), rng.normal(size=(2, 3)), rng.normal(size=(1, 3))), 1e-12, 1e-14)
def concat_then_reduce(a, b, c):
    joined = np.concatenate([a, b * 2, c])
    return joined.mean(axis=0), joined.max(axis=1)


@program(lambda rng, n: (rng.normal(size=n), rng.normal(size=n), rng.normal(size=n)), 1e-12, 1e-14)
def stack_then_reduce(a, b, c):
    stacked = np.stack([a, b + 1, c])
    return stacked.sum(axis=0), np.vstack([a, c]).min(axis=1), np.column_stack([a, b])


@program(lambda rng, n: (rng.normal(size=2 * n),), 1e-11, 1e-12)
def fft_post_processing(signal):
    spectrum = np.fft.rfft(signal * np.hanning(len(signal)))
    power = spectrum.real**2 + spectrum.imag**2
    return 10 * np.log10(power / power.max() + 1e-12), np.fft.irfft(np.where(power > 1, spectrum, 0), len(signal))


@program(lambda rng, n: (rng.normal(size=n) + 1j * rng.normal(size=n),), 1e-13)
def spectrum_of_outside(spectrum):
    power = np.abs(spectrum) ** 2
    return np.angle(spectrum), power / power.sum(), np.conj(spectrum[::-1]), np.where(power > 1, spectrum, 0)


@program(lambda rng, n: (rng.normal(size=(n, n)),), 1e-12, 1e-14)
def triangles_and_traces(x):
    upper = np.triu(x, 1)
    return upper + upper.T, np.tril(x) * np.eye(len(x)), np.trace(x), np.outer(x[0], x[1])


@program(lambda rng, n: (rng.normal(size=(2, n)), rng.random()), 1e-13, 1e-15)
def rotation(points, angle):
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    x, y = points
    return np.stack([turn[0, 0] * x + turn[0, 1] * y, turn[1, 0] * x + turn[1, 1] * y])


@program(lambda rng, n: (rng.normal(size=n), rng.normal(size=n)))
def zeros_that_are_filled(a, b):
    found = np.zeros((3, len(a)))
    found[0] = a
    found[1, 1:] = b[:-1]
    found[2] = np.minimum(a, b)
    return found


@program(lambda rng, n: (rng.normal(size=(4, n)),))
def sorted_rows(x):
    return np.sort(x, axis=1)[:, ::-1] * 2, np.median(x, axis=1)


@program(lambda rng, n: (rng.normal(size=n), rng.normal(size=n)), 1e-13)
def polynomials(x, y):
    return (
        np.polyval([0.5, -1, 2, 0.25], x),
        np.kron(x, np.array([1.0, -1.0])),
        np.cross(x[:3], y[:3]),
        np.isclose(x, y),
    )
