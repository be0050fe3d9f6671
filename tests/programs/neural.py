"""Programs of neural networks: normalisations, layers, losses, optimisers."""

from __future__ import annotations

import numpy as np

from tests.programs.program import program


def _f32(rng, *shape):
    return rng.normal(size=shape).astype("float32")


@program(lambda rng, n: (rng.normal(size=(n, n + 3)),), 1e-13)
def softmax(x):
    power = np.exp(x - x.max(axis=-1, keepdims=True))
    return power / power.sum(axis=-1, keepdims=True)


@program(lambda rng, n: (_f32(rng, n, 12), _f32(rng, 12), _f32(rng, 12)), 1e-5, 1e-6)
def layer_norm(x, scale, shift):
    centred = x - x.mean(axis=-1, keepdims=True)
    return scale * centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5) + shift


@program(lambda rng, n: (_f32(rng, n, 3, 5, 4), _f32(rng, 1, 3, 1, 1), _f32(rng, 1, 3, 1, 1)), 1e-5, 1e-6)
def batch_norm(x, scale, shift):
    mean, var = x.mean(axis=(0, 2, 3), keepdims=True), x.var(axis=(0, 2, 3), keepdims=True)
    return (x - mean) / np.sqrt(var + 1e-5) * scale + shift, mean.ravel(), var.ravel()


def _trained(x, scale, shift, means, spreads, axes):
    mean, var = x.mean(axis=axes, keepdims=True), x.var(axis=axes, keepdims=True)
    means *= 0.9
    means += 0.1 * mean
    spreads *= 0.9
    spreads += 0.1 * var
    return (x - mean) / np.sqrt(var + 1e-5) * scale + shift


@program(lambda rng, n: (_f32(rng, n, 3, 5, 4), *(_f32(rng, 1, 3, 1, 1) for _ in range(4))), 1e-5, 1e-6)
def batch_norm_in_training(x, scale, shift, means, spreads):
    return _trained(x, scale, shift, means, spreads, (0, 2, 3))


@program(lambda rng, n: (_f32(rng, 40 * n, 7), *(_f32(rng, 1, 7) for _ in range(4))), 1e-5, 1e-5)
def batch_norm_of_rows(x, scale, shift, means, spreads):
    return _trained(x, scale, shift, means, spreads, 0)


@program(lambda rng, n: (_f32(rng, n, 6), _f32(rng, 6, 4), _f32(rng, 4)), 1e-5, 1e-6)
def affine_relu(x, weight, bias):
    return np.maximum(x @ weight + bias, 0)


def _tensors(rng, n):
    shapes = [(n, 4), (4,), (4, 5), (5,), (5, 2), (2,)]
    params, grads, first = ([rng.normal(size=shape) for shape in shapes] for _ in range(3))
    return params, grads, first, [rng.random(shape) for shape in shapes], 3


@program(_tensors, 1e-14)
def adam(params, grads, firsts, seconds, step):
    rate = 1e-3 * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    for param, grad, first, second in zip(params, grads, firsts, seconds, strict=True):
        first *= 0.9
        first += 0.1 * grad
        second *= 0.999
        second += 0.001 * grad * grad
        param -= rate * first / (np.sqrt(second) + 1e-8)


@program(lambda rng, n: (*(rng.normal(size=(2, n, 4)) for _ in range(3)),), 1e-12, 1e-14)
def attention_of_small_heads(query, key, value):
    scores = (query[:, :, None, :] * key[:, None, :, :]).sum(-1) / np.sqrt(query.shape[-1])
    scores = np.where(np.tri(query.shape[1], dtype=bool), scores, -np.inf)
    weight = np.exp(scores - scores.max(-1, keepdims=True))
    weight = weight / weight.sum(-1, keepdims=True)
    return (weight[:, :, :, None] * value[:, None]).sum(2)


@program(lambda rng, n: (*(rng.normal(size=(2, n, 4)) for _ in range(3)),), 1e-12, 1e-14)
def attention_by_products(query, key, value):
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    weight = np.exp(scores - scores.max(-1, keepdims=True))
    return (weight / weight.sum(-1, keepdims=True)) @ value


@program(lambda rng, n: (_f32(rng, n + 4, n + 2), _f32(rng, 2, 3, 3), _f32(rng, 2)), 1e-4, 1e-5)
def cnn_layer_by_windows(image, weight, bias):
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3))
    return np.maximum(np.einsum("ijkl,okl->oij", windows, weight) + bias[:, None, None], 0)


@program(lambda rng, n: (_f32(rng, n, 4),), 1e-5, 1e-6)
def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.float32(0.7978846) * (x + np.float32(0.044715) * x**3)))


@program(lambda rng, n: (rng.normal(size=(n, 5)), rng.integers(0, 5, n)), 1e-13)
def cross_entropy(logits, labels):
    shifted = logits - logits.max(axis=1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return -np.take_along_axis(logs, labels[:, None], axis=1).mean()


@program(lambda rng, n: (rng.normal(size=(9, n)), rng.integers(0, 9, 20)))
def gather_relu(table, ids):
    return np.maximum(table[ids], 0)


@program(lambda rng, n: (_f32(rng, 2 * n, 6), _f32(rng, 2 * n, 6)))
def max_pool_and_skip(x, skip):
    pooled = x.reshape(x.shape[0] // 2, 2, 3, 2).max(axis=(1, 3))
    return np.repeat(np.repeat(pooled, 2, axis=0), 2, axis=1) + skip


@program(lambda rng, n: (_f32(rng, n, 8), _f32(rng, n, 2)), 1e-5, 1e-6)
def lstm_gates(gates, cell):
    i, f, g, o = np.split(gates, 4, axis=1)
    i, f, o = (1 / (1 + np.exp(-each)) for each in (i, f, o))
    cell = f * cell + i * np.tanh(g)
    return o * np.tanh(cell), cell
