"""Errors of scans (codes F260 to F269). NumPy's own texts where it has them."""

from __future__ import annotations

from typing import ClassVar

from fusec.errors.base import FusecError, FusecTypeError, UserError


class AxisNeeded(UserError):
    """A scan of an array of several axes, or of none, that does not say along which."""

    code: ClassVar[str] = "F260"
    message: ClassVar[str] = "'{name}' scans one axis of an array of dimension {ndim}, not axis={axis}"
    hint: ClassVar[str] = "pass axis= as one integer; without it, an array must have one dimension"
    name: str
    axis: str
    ndim: int


class SegmentsNotBool(UserError):
    """Starts of segments of another type."""

    code: ClassVar[str] = "F261"
    message: ClassVar[str] = "'{param}' says where segments of '{name}' start and must be bool, not {given}"
    hint: ClassVar[str] = "declare it as 'bool {param}', and compare, e.g. keys[1:] != keys[:-1]"
    exception: ClassVar[type[FusecError]] = FusecTypeError
    name: str
    param: str
    given: str


class SegmentsUnknown(UserError):
    """Segments by an input that is not declared."""

    code: ClassVar[str] = "F262"
    message: ClassVar[str] = "segments='{param}' is not an input of '{name}' that lies along its arrays"
    hint: ClassVar[str] = "declare 'bool {param}' among in_params, not raw"
    name: str
    param: str


class ExclusiveWithoutIdentity(UserError):
    """An exclusive scan whose first element has no value."""

    code: ClassVar[str] = "F263"
    message: ClassVar[str] = "'{name}' is exclusive: its first element would be the identity, and there is none"
    hint: ClassVar[str] = "define the kernel with identity='...', or inclusive=True"
    name: str


class NoPositionInScan(UserError):
    """A text that asks for its position."""

    code: ClassVar[str] = "F264"
    message: ClassVar[str] = "a scan has no {word}"
    hint: ClassVar[str] = "pass an array of positions, e.g. numpy.arange(n)"
    word: str
