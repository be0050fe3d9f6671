"""Functions that only kernels can use, in Python."""
