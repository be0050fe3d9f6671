"""Reductions in Numba: explicit loops, parallel over rows, over blocks of columns, or over chunks."""

from __future__ import annotations

import math

import numba
import numpy as np
from reductions import EPSILON

F = np.float32
BLOCK = 64  # columns that a thread takes at a time: four cache lines of each row
CHUNK = 1 << 16


def total(x, z):
    s = F(0)
    for i in numba.prange(x.shape[0]):
        s += x[i]
    z[0] = s


def total_0(x, z):
    for block in numba.prange((x.shape[1] + BLOCK - 1) // BLOCK):
        end = min(x.shape[1], (block + 1) * BLOCK)
        for j in range(block * BLOCK, end):
            z[j] = F(0)
        for i in range(x.shape[0]):
            for j in range(block * BLOCK, end):
                z[j] += x[i, j]


def total_1(x, z):
    for i in numba.prange(x.shape[0]):
        s = F(0)
        for j in range(x.shape[1]):
            s += x[i, j]
        z[i] = s


def mean(x, z):
    s = F(0)
    for i in numba.prange(x.shape[0]):
        s += x[i]
    z[0] = s / F(x.shape[0])


def mean_0(x, z):
    for block in numba.prange((x.shape[1] + BLOCK - 1) // BLOCK):
        end = min(x.shape[1], (block + 1) * BLOCK)
        for j in range(block * BLOCK, end):
            z[j] = F(0)
        for i in range(x.shape[0]):
            for j in range(block * BLOCK, end):
                z[j] += x[i, j]
        for j in range(block * BLOCK, end):
            z[j] /= F(x.shape[0])


def mean_1(x, z):
    for i in numba.prange(x.shape[0]):
        s = F(0)
        for j in range(x.shape[1]):
            s += x[i, j]
        z[i] = s / F(x.shape[1])


def var(x, z):
    s = F(0)
    for i in numba.prange(x.shape[0]):
        s += x[i]
    m = s / F(x.shape[0])
    q = F(0)
    for i in numba.prange(x.shape[0]):
        d = x[i] - m
        q += d * d
    z[0] = q / F(x.shape[0])


def var_0(x, z):
    for block in numba.prange((x.shape[1] + BLOCK - 1) // BLOCK):
        start = block * BLOCK
        end = min(x.shape[1], start + BLOCK)
        m = np.zeros(BLOCK, np.float32)
        for i in range(x.shape[0]):
            for j in range(start, end):
                m[j - start] += x[i, j]
        for j in range(start, end):
            m[j - start] /= F(x.shape[0])
            z[j] = F(0)
        for i in range(x.shape[0]):
            for j in range(start, end):
                d = x[i, j] - m[j - start]
                z[j] += d * d
        for j in range(start, end):
            z[j] /= F(x.shape[0])


def var_1(x, z):
    for i in numba.prange(x.shape[0]):
        s = F(0)
        for j in range(x.shape[1]):
            s += x[i, j]
        m = s / F(x.shape[1])
        q = F(0)
        for j in range(x.shape[1]):
            d = x[i, j] - m
            q += d * d
        z[i] = q / F(x.shape[1])


def squares_0(x, y, z):
    for block in numba.prange((x.shape[1] + BLOCK - 1) // BLOCK):
        end = min(x.shape[1], (block + 1) * BLOCK)
        for j in range(block * BLOCK, end):
            z[j] = F(0)
        for i in range(x.shape[0]):
            for j in range(block * BLOCK, end):
                d = x[i, j] - y[i, j]
                z[j] += d * d


def squares_1(x, y, z):
    for i in numba.prange(x.shape[0]):
        s = F(0)
        for j in range(x.shape[1]):
            d = x[i, j] - y[i, j]
            s += d * d
        z[i] = s


def argmax(x, z):
    chunks = (x.shape[0] + CHUNK - 1) // CHUNK
    places = np.zeros(chunks, np.int64)
    for chunk in numba.prange(chunks):
        at = chunk * CHUNK
        for i in range(chunk * CHUNK, min(x.shape[0], (chunk + 1) * CHUNK)):
            if x[i] > x[at]:
                at = i
        places[chunk] = at
    found = places[0]
    for chunk in range(chunks):
        if x[places[chunk]] > x[found]:
            found = places[chunk]
    z[0] = found


def cumsum(x, z):
    chunks = (x.shape[0] + CHUNK - 1) // CHUNK
    starts = np.zeros(chunks + 1, np.float32)
    for chunk in numba.prange(chunks):
        s = F(0)
        for i in range(chunk * CHUNK, min(x.shape[0], (chunk + 1) * CHUNK)):
            s += x[i]
        starts[chunk + 1] = s
    for chunk in range(chunks):
        starts[chunk + 1] += starts[chunk]
    for chunk in numba.prange(chunks):
        s = starts[chunk]
        for i in range(chunk * CHUNK, min(x.shape[0], (chunk + 1) * CHUNK)):
            s += x[i]
            z[i] = s


def cumsum_0(x, z):
    for block in numba.prange((x.shape[1] + BLOCK - 1) // BLOCK):
        low, high = block * BLOCK, min(x.shape[1], (block + 1) * BLOCK)
        for j in range(low, high):
            z[0, j] = x[0, j]
        for i in range(1, x.shape[0]):
            for j in range(low, high):
                z[i, j] = z[i - 1, j] + x[i, j]


def cumsum_1(x, z):
    for i in numba.prange(x.shape[0]):
        s = F(0)
        for j in range(x.shape[1]):
            s += x[i, j]
            z[i, j] = s


def softmax(x, z):
    for i in numba.prange(x.shape[0]):
        m = x[i, 0]
        for j in range(x.shape[1]):
            m = max(m, x[i, j])
        s = F(0)
        for j in range(x.shape[1]):
            z[i, j] = math.exp(x[i, j] - m)
            s += z[i, j]
        for j in range(x.shape[1]):
            z[i, j] /= s


def layer_norm(x, z):
    for i in numba.prange(x.shape[0]):
        s = F(0)
        for j in range(x.shape[1]):
            s += x[i, j]
        m = s / F(x.shape[1])
        q = F(0)
        for j in range(x.shape[1]):
            d = x[i, j] - m
            q += d * d
        scale = F(1) / math.sqrt(q / F(x.shape[1]) + F(EPSILON))
        for j in range(x.shape[1]):
            z[i, j] = (x[i, j] - m) * scale


LOOPS = {function.__name__.replace("total", "sum"): function for function in (
    total, total_0, total_1, mean, mean_0, mean_1, var, var_0, var_1, squares_0, squares_1, argmax, cumsum,
    cumsum_0, cumsum_1, softmax, layer_norm
)}  # fmt: skip
