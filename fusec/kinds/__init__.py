"""The kinds of kernels: how the iteration domain of each becomes launches."""
