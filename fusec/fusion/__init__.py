"""Array code fused into few kernels: `fuse`, and `evaluate` for texts."""
