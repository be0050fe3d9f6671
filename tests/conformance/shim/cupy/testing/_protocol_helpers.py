"""Wrappers of device arrays, of which there are none here: the tests that use them are left out."""


class DummyObjectWithCuPyGetNDArray:
    """Only named."""


class DummyObjectWithCudaArrayInterface:
    """Only named."""
