"""The part of cupy.cuda that the tests import."""

from cupy.cuda import device, runtime, texture  # noqa: F401
from cupy.cuda.device import Device  # noqa: F401
