"""What calls of other extents make of the shapes of their arrays, as functions of what these make before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusec.base.recorded import NotRecordedError, called
from fusec.base.records import dataclass
from fusec.fusion.trace.array_forms import form_of


class OtherShapesError(Exception):
    """The extents of a call need another plan."""


class UnknownExtentsError(Exception):
    """A shape does not follow from those of arguments."""


class CallShapes:
    """All that follows from the shapes of one call's arrays.

    outlines: the arrays, by place. is_recorded: these are forms, with symbols as extents.
    """

    __slots__ = ("_found", "is_recorded", "outlines")

    def __init__(self, outlines: Sequence[Any], is_recorded: bool = False) -> None:
        self.outlines, self.is_recorded = outlines, is_recorded
        self._found: dict[Derived, Any] = {}

    def of(self, derived: Derived) -> Any:
        """A derived shape, extent or array in this call. Raises OtherShapesError, and NumPy's errors."""
        found = self._found.get(derived, self)
        if found is self:
            found = derived.make(self)
            if self.is_recorded and isinstance(found, np.ndarray):
                found = form_of(found)
            self._found[derived] = found
        return found


@dataclass(eq=False)
class Derived:
    """What calls derive from the shapes of their arrays. now: it in the traced call; depth: steps from an argument."""

    make: Callable[[CallShapes], Any]
    now: Any
    depth: int


def computed_in(function: Callable[..., Any], operands: Sequence[Derived], call: CallShapes) -> Any:
    """What a function makes of numbers. Raises OtherShapesError for any error, which the user's function may catch."""
    given = [call.of(each) for each in operands]
    try:
        return called(function, given)
    except NotRecordedError:
        raise
    except Exception:
        raise OtherShapesError from None
