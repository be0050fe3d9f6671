"""NumPy's functions on traced arrays, and calls of kernels and libraries."""
