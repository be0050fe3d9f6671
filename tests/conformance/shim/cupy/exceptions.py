"""The part of cupy.exceptions that the tests import."""

from numpy.exceptions import AxisError, ComplexWarning  # noqa: F401
