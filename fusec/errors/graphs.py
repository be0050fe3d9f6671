"""Errors of graphs of arrays (codes F760 to F769)."""

from __future__ import annotations

from fusec.errors.base import Described, FusecSyntaxError, FusecTypeError


class GraphTypes(Described, code="F760", exception=FusecTypeError):
    """An operation of a graph on dtypes that it does not take, or an unknown operation."""


class GraphShapes(Described, code="F761"):
    """Shapes, axes or indices in a graph that do not fit together, or are not known to."""


class GraphSyntax(Described, code="F762", exception=FusecSyntaxError):
    """A text that is not that of a graph."""

    label = "here"


class GraphArguments(Described, code="F763", exception=FusecTypeError):
    """Arguments of a compiled graph that are not what its inputs are declared as."""


class GraphBroken(Described, code="F764"):
    """A graph that cannot be compiled: without outputs, or with sizes that no input decides."""
