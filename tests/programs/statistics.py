"""Programs of statistics and finance."""

from __future__ import annotations

import numpy as np

from tests.programs.program import program


@program(lambda rng, n: (rng.normal(size=(n, 3)), rng.normal(size=(4, 3))), 1e-12)
def kmeans_step(points, centres):
    distances = ((points[:, None, :] - centres) ** 2).sum(-1)
    labels = np.argmin(distances, axis=1)
    chosen = labels[:, None] == np.arange(len(centres))
    counts = np.maximum(chosen.sum(0), 1)
    return labels, (chosen[:, :, None] * points[:, None]).sum(0) / counts[:, None]


@program(lambda rng, n: (rng.normal(size=(n, 6)), rng.normal(size=(n, 6))), 1e-12, 1e-14)
def cosine_similarity(a, b):
    return (a * b).sum(1) / (np.sqrt((a * a).sum(1)) * np.sqrt((b * b).sum(1)))


@program(lambda rng, n: (rng.normal(size=(n, 3)), rng.normal(size=(n + 2, 3))), 1e-13)
def pairwise_distances(a, b):
    return np.sqrt(((a[:, None] - b) ** 2).sum(-1))


@program(lambda rng, n: (rng.normal(size=(n, 64)), rng.normal(size=(50, 64))), 1e-12)
def squared_distances(points, centres):
    return ((points[:, None] - centres) ** 2).sum(-1)


@program(lambda rng, n: (rng.normal(size=(n, 30, 20)),), 1e-12)
def deviation_over_axes(x):
    return x.std(axis=(0, 2))


@program(lambda rng, n: (rng.normal(size=n),), 1e-15)
def cube(x):
    return x**3


@program(lambda rng, n: (rng.normal(size=(n, 5)),), 1e-12, 1e-14)
def standardise(x):
    return (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)


@program(lambda rng, n: (rng.normal(size=n), np.tril(rng.normal(size=(n, n))), rng.normal(size=n)), 1e-12, 1e-14)
def mvn_draw(mu, lower, z):
    return mu + (lower * z).sum(1)


@program(lambda rng, n: (rng.normal(size=(n, 4)), rng.normal(size=4), rng.integers(0, 2, n)), 1e-12, 1e-14)
def logistic_step(x, w, y):
    p = 1 / (1 + np.exp(-(x @ w)))
    grad = x.T @ (p - y) / len(y)
    return w - 0.1 * grad, -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))


@program(lambda rng, n: (rng.normal(size=(n, 4)), rng.normal(size=(4, 4)), rng.normal(size=4)), 1e-12, 1e-14)
def product_in_the_middle(x, weight, bias):
    scaled = (x - x.mean(0)) * 2
    return np.tanh(scaled @ weight + bias) + x


@program(lambda rng, n: (rng.normal(size=(3, n)), rng.random(n)), 1e-12, 1e-14)
def weighted_covariance(x, weights):
    weights = weights / weights.sum()
    centred = x - (x * weights).sum(1, keepdims=True)
    return (centred[:, None] * centred * weights).sum(-1)


@program(lambda rng, n: (rng.normal(size=(3, n)),), 1e-11, 1e-12)
def correlation_matrix(x):
    return np.corrcoef(x), np.cov(x)


@program(lambda rng, n: (rng.normal(size=2 * n),), 1e-12, 1e-12)
def rolling_mean(x):
    sums = np.cumsum(np.concatenate([np.zeros(1), x]))
    return (sums[4:] - sums[:-4]) / 4


@program(lambda rng, n: (rng.normal(size=n), rng.normal(size=n)), 1e-13)
def huber_loss(predicted, wanted):
    error = np.abs(predicted - wanted)
    return np.where(error < 1, 0.5 * error**2, error - 0.5).mean()


@program(lambda rng, n: (rng.random(n),))
def histogram(x):
    counts, edges = np.histogram(x, bins=5, range=(0, 1))
    return counts, np.digitize(x, edges)


@program(lambda rng, n: (np.where(rng.random((n, 4)) < 0.2, np.nan, rng.normal(size=(n, 4))),), 1e-12, 1e-14)
def nan_statistics(x):
    filled = np.where(np.isnan(x), np.nanmean(x, axis=0), x)
    return filled, np.nanstd(x, axis=0), np.nanmax(x), np.isnan(x).sum(axis=1)


@program(lambda rng, n: (rng.normal(size=(n, 5)), rng.integers(0, 5, n)))
def accuracy(scores, labels):
    return (np.argmax(scores, axis=1) == labels).sum(), np.argmax(scores)


def _normal(x):
    """The distribution function of the normal distribution (Abramowitz and Stegun 26.2.17)."""
    t = 1 / (1 + 0.2316419 * np.abs(x))
    tail = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = tail * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    return np.where(x < 0, tail, 1 - tail)


@program(lambda rng, n: (80 + 40 * rng.random(n), 80 + 40 * rng.random(n), 0.1 + rng.random(n), 0.02, 0.3), 1e-11)
def black_scholes(spot, strike, time, rate, volatility):
    deviation = volatility * np.sqrt(time)
    d1 = (np.log(spot / strike) + (rate + volatility**2 / 2) * time) / deviation
    d2 = d1 - deviation
    discounted = strike * np.exp(-rate * time)
    call = spot * _normal(d1) - discounted * _normal(d2)
    return call, call - spot + discounted


@program(lambda rng, n: (rng.normal(size=(4, n)),), 1e-12)
def path_payoff(z):
    paths = 100 * np.cumprod(np.exp(0.01 * z - 0.00005), axis=1)
    drawdown = (1 - paths / np.maximum.accumulate(paths, axis=1)).max(axis=1)
    return np.maximum(paths.mean(axis=1) - 100, 0).mean(), drawdown
