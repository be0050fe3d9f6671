"""Functions for test_decorators: a module of a user's, with constants, helpers and decorated functions."""

import math
from math import erf

import numpy as np

import fusec

SQRT1_2 = 0.7071067811865476
WEIGHTS = (0.25, 0.5, np.float32(0.25))
KIND = np.float32


def half(x, by=2):
    return x / by


def sum_and_difference(a, b):
    return a + b, a - b


@fusec.elementwise
def gelu(x):
    """The Gaussian error linear unit."""
    return half(x) * (1 + erf(x * SQRT1_2))


@fusec.elementwise
def later(x):
    return defined_below(x) + math.floor(2.5)


def defined_below(x):
    return x * WEIGHTS[1]


@fusec.elementwise(name="mandelbrot", fp="strict")
def escape(real, imag, limit=50):
    c = complex(real, imag)
    z = 0j
    for n in range(limit):
        if z.real * z.real + z.imag * z.imag > 4:
            return n
        z = z * z + c
    return limit


@fusec.elementwise
def both(x, y=1.0):
    total, difference = sum_and_difference(x, y)
    return total, KIND(difference)


class Holder:
    @fusec.elementwise
    def twice(x):
        return 2 * x


def scaled(factor):
    @fusec.elementwise
    def f(x):
        return x * factor

    return f
