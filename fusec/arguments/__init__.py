"""What kernels are given: signatures, numbers, arrays as memory, and the containers of results."""
