"""Errors of scans (codes F260 to F269). NumPy's own texts where it has them."""

from __future__ import annotations

from fusec.errors.base import FusecTypeError, Named, OfParameter, UserError


class AxisNeeded(Named, code="F260"):
    """A scan of an array without axes, or of one with several axes and no axis=."""

    message = "'{name}' scans one axis of an array of dimension {ndim}, not axis={axis}"
    hint = "pass axis= as one integer; without it, an array must have one dimension"
    axis: str
    ndim: int


class SegmentsNotBool(OfParameter, code="F261", exception=FusecTypeError):
    """Starts of segments that are not bool."""

    message = "'{param}' marks where segments of '{name}' start and must be bool, not {given}"
    hint = "declare it as 'bool {param}', and compare, e.g. keys[1:] != keys[:-1]"
    given: str


class SegmentsUnknown(OfParameter, code="F262"):
    """Segments marked by an input that is not declared."""

    message = "segments='{param}' is not an input of '{name}' that lies along its arrays"
    hint = "declare 'bool {param}' among in_params, not raw"


class ExclusiveWithoutIdentity(Named, code="F263"):
    """An exclusive scan without an identity for its first element."""

    message = "'{name}' is exclusive: its first element would be the identity, and there is none"
    hint = "define the kernel with identity='...', or inclusive=True"


class NoPositionInScan(UserError, code="F264"):
    """A text of a scan that uses its position."""

    message = "a scan has no {word}"
    hint = "pass an array of positions, e.g. numpy.arange(n)"
    word: str
