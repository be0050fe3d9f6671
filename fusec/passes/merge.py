"""Merge: declare a local where it gets its first value."""

from __future__ import annotations

from fusec.ir.loops import Assign, Declare, Program, Stmt
from fusec.ir.walk import Body, changed_names, locals_of, map_blocks, operands, roots_of, with_bodies


def merge_declarations(program: Program) -> Program:
    """Make one declaration of a declaration and the assignment after it, in the assignment's place and on its line.

    Only where nothing in between mentions the local and the assignment does not read it, both in one list of
    statements; what the local was declared to be is then never seen.
    Requires: a verified program.
    Ensures: every local has the values it had wherever it is read.
    """
    return with_bodies(program, _merge)


def _merge(body: Body) -> Body:
    """The statements with declarations moved down to first assignments; the same object if none move."""
    result: list[Stmt | None] = []  # None where a declaration stood
    pending: dict[str, int] = {}  # locals that nothing has mentioned since their declaration: where in `result` it is
    changed = False
    for stmt in body:
        new = map_blocks(stmt, _merge)
        if pending:
            mentioned = _mentioned(new)
            first = _first_value(new, result, pending)
            if first is not None:
                result[pending[first.name]] = None
                new = first
            for name in mentioned & pending.keys():
                del pending[name]
        if isinstance(new, Declare):
            pending[new.name] = len(result)
        result.append(new)
        changed = changed or new is not stmt
    return tuple(stmt for stmt in result if stmt is not None) if changed else body


def _first_value(stmt: Stmt, result: list[Stmt | None], pending: dict[str, int]) -> Declare | None:
    """The declaration that an assignment and the pending declaration of its local become."""
    match stmt:
        case Assign(name, value) if name in pending and name not in locals_of(operands(stmt)):
            declared = result[pending[name]]
            assert isinstance(declared, Declare), f"{name} is pending without a declaration"
            return Declare(name, declared.type, value, line=stmt.line)
        case _:
            return None


def _mentioned(stmt: Stmt) -> set[str]:
    """The locals that a statement, or one nested in it, reads or sets."""
    return locals_of(roots_of((stmt,))) | changed_names((stmt,))
