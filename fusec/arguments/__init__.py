"""The arguments of kernels: signatures, numbers, arrays as memory, and containers of results."""
