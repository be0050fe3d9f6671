"""The kernels that users create, and the decorators that create them from functions."""
