"""The part of cupy.cuda that the tests import."""

from cupy.cuda import runtime, texture  # noqa: F401
