"""Stands in for CuPy while its own tests run against fusec: NumPy arrays, fusec's kernels."""

import numpy as np
from numpy import *  # noqa: F403
from numpy import bool_, float32, float64, ndarray, random  # noqa: F401

import cupy.testing  # noqa: F401 - in place of the testing that NumPy has
import fusec
from cupy import _core, cuda, exceptions  # noqa: F401

vectorize = fusec.vectorize


def fuse(*args, kernel_name="fused"):
    """fusec's, all kernels of one name, so that equal ones are compiled once."""
    return fusec.fuse(*args, kernel_name=kernel_name)


class ElementwiseKernel(fusec.ElementwiseKernel):
    """fusec's kernel with the private cache that one test looks into."""

    @property
    def _cached_codes(self):
        return self.cached_codes


class ReductionKernel(fusec.ReductionKernel):
    """fusec's kernel with the private cache that one test looks into."""

    @property
    def _cached_codes(self):
        return self.cached_codes


def get_default_memory_pool():
    """A pool with nothing to free."""

    class Pool:
        def free_all_blocks(self):
            pass

    return Pool()


asnumpy = np.asarray


def get_array_module(*_):
    """This module, whatever the arrays."""
    import cupy

    return cupy
