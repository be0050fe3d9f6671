"""The definitions of kernel strings and of reductions in texts, as plain values."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fusec.base.records import dataclass
from fusec.base.rounding_mode import default_rounding

if TYPE_CHECKING:
    from fusec.frontends.c.lower import KernelText
    from fusec.frontends.c.reductions import ReductionText


@dataclass(frozen=True)
class Definition:
    """The texts of a kernel, exactly as the user gave them."""

    in_params: str
    out_params: str
    operation: str
    name: str = "kernel"
    preamble: str = ""
    loop_prep: str = ""
    after_loop: str = ""
    options: tuple[str, ...] = ()

    @property
    def texts(self) -> dict[str, Any]:
        """All fields by name."""
        return dict(vars(self))

    def read(self) -> KernelText:
        """The parsed texts. Raises the front end's errors."""
        return _parsed(self)


@dataclass(frozen=True)
class ReductionDefinition:
    """The texts of a reduction, exactly as the user gave them."""

    in_params: str
    out_params: str
    map_expr: str
    reduce_expr: str
    post_map_expr: str
    identity: str | None
    name: str = "reduce_kernel"
    reduce_type: str | None = None
    preamble: str = ""
    options: tuple[str, ...] = ()
    combined: str = "reduce_expr"  # what messages call `reduce_expr`
    number: object = None  # the identity if it was given as a number, which totals must hold

    @property
    def texts(self) -> dict[str, Any]:
        """All fields by name; an identity that is a number appears as text."""
        return {name: value for name, value in vars(self).items() if name != "number"}

    def read(self) -> ReductionText:
        """The parsed texts. Raises the front end's errors."""
        return _parsed_reduction(self)


@lru_cache(maxsize=256)
@default_rounding()
def _parsed(definition: Definition) -> KernelText:
    from fusec.frontends.c import lower

    return lower.parse(**definition.texts)


@lru_cache(maxsize=256)
@default_rounding()
def _parsed_reduction(definition: ReductionDefinition) -> ReductionText:
    from fusec.frontends.c import reductions

    return reductions.parse(**definition.texts)
