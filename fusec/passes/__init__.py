"""The passes, one module each, and the order in which they run."""

from __future__ import annotations

from collections.abc import Callable

from fusec import debug
from fusec.ir.loops import Program
from fusec.passes import expand, fold, merge, narrow, prune, reuse, share, simplify

Pass = Callable[[Program], Program]

PASSES: tuple[Pass, ...] = (
    fold.fold_constants,
    simplify.simplify_expressions,
    narrow.narrow_types,
    prune.prune_dead,  # before expand, so that what nothing reads costs no functions
    merge.merge_declarations,
    expand.expand,
    reuse.reuse_values,
    share.name_shared,
)


def run(program: Program, check: bool = False) -> Program:
    """All passes in order: what remains are primitive ops, loads, stores and calls.

    check: verify the program before the first pass and after each one, as FUSEC_DEBUG >= 3 and FUSEC_DUMP do too; an
    AssertionError then names the pass that broke it.
    """
    watched = debug.is_wanted(3)
    check = check or watched
    if check:
        _verify(program, "the front end")
    if watched:
        _show(program, "the front end")
    for step in PASSES:
        program = step(program)
        if check:
            _verify(program, step.__name__, primitive=step in PASSES[PASSES.index(expand.expand) :])
        if watched:
            _show(program, step.__name__)
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
