"""What the code of an element-wise kernel is specialised for."""

from fusec.compiler.pipeline import Specialisation
from fusec.dispatch import elementwise
from fusec.dispatch.shown import Showing


def specialisation(kernel, types=None) -> Specialisation:
    """What source() shows: for the given types, or those of the last call."""
    bound = kernel.shown(Showing(types=types)).bound
    return elementwise.specialisation(bound.request, *bound.launches)
