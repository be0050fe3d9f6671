"""The kernels that users make, and the decorators that make them of functions."""
