"""The passes, one module each, and the order in which they run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fusec.base.kernel_abi import Fp
from fusec.environment import debug
from fusec.ir.loops import Program
from fusec.passes import (
    approximate,
    common_subexpressions,
    contract,
    eliminate_dead_code,
    expand,
    fold,
    merge,
    narrow_to_int16,
    narrow_types,
    simplify,
    value_numbering,
)
from fusec.passes.approximate import Native

Pass = Callable[[Program], Program]

PASSES: tuple[Pass, ...] = (
    fold.fold_constants,
    simplify.simplify_expressions,
    narrow_types.narrow_types,
    eliminate_dead_code.prune_dead,  # before expand, so that what nothing reads costs no functions
    merge.merge_declarations,
    expand.expand,
    value_numbering.reuse_values,
    common_subexpressions.name_shared,
)


def order(fp: Fp = "strict", native: Native = frozenset(), fits: bool = False) -> tuple[Pass, ...]:
    """The passes of a floating-point mode; the other modes change arithmetic before functions are expanded.

    fits: with `fit.fit_integers`.
    """
    at = PASSES.index(expand.expand)
    first = (*PASSES[:at], narrow_to_int16.fit_integers) if fits else PASSES[:at]
    match fp:
        case "strict":
            return (*first, *PASSES[at:])
        case "contract":
            return (*first, contract.contract, *PASSES[at:])
        case "fast":
            loose = (partial(approximate.approximate, native=native), contract.contract)
            return (*first, *loose, partial(expand.expand, native=native), *PASSES[at + 1 :])


def run(
    program: Program,
    check: bool = False,
    *,
    fp: Fp = "strict",
    native: Native = frozenset(),
    fits: bool = False,
) -> Program:
    """All passes in order: what remains are primitive ops, loads, stores and calls.

    check: verify the program before the first pass and after each one, as FUSEC_DEBUG >= 3 and FUSEC_DUMP do too; an
    AssertionError then names the pass that broke it. fp: the floating-point mode. native: ops that a target has
    instructions for in the mode "fast", which remain too. fits: the target computes integers of fewer bits faster.
    """
    watched = debug.is_wanted(3)
    check = check or watched
    if check:
        _verify(program, "the front end")
    if watched:
        _show(program, "the front end")
    is_expanded = False
    for step in order(fp, native, fits):
        program = step(program)
        name = getattr(step, "func", step).__name__
        is_expanded = is_expanded or name == expand.expand.__name__
        if check:
            _verify(program, name, primitive=is_expanded and not native)
        if watched:
            _show(program, name)
    return program


def _verify(program: Program, culprit: str, primitive: bool = False) -> None:
    """Verify, blaming the pass that ran last."""
    from fusec.ir.verify import verify  # needed only where programs are checked

    try:
        verify(program, primitive)
    except AssertionError as error:
        raise AssertionError(f"after {culprit}: {error}") from error


def _show(program: Program, name: str) -> None:
    from fusec.ir.text import print_program  # needed only where programs are shown

    debug.show(3, f"{program.name} after {name}", print_program(program))
