"""The texts of kernels and reductions, exactly as users give them."""

from __future__ import annotations

from fusec.base.records import dataclass


@dataclass(frozen=True)
class KernelTexts:
    """The texts of a kernel."""

    in_params: str
    out_params: str
    operation: str
    name: str = "kernel"
    preamble: str = ""
    loop_prep: str = ""
    after_loop: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReductionTexts:
    """The texts of a reduction."""

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
