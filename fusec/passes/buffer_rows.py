"""Buffer rows: values that an output holds between walks get their own row, so that only the last walk stores it."""

from __future__ import annotations

from collections.abc import Mapping

from fusec.base.records import replace
from fusec.ir.expr import Expr
from fusec.ir.loops import Element, Load, Stmt, Store
from fusec.ir.reductions import ReductionIR, Stage, addressed, is_stored
from fusec.ir.walk import expressions, map_expressions, rewriter, roots_of


def kept_rows(reduction: ReductionIR) -> dict[str, str]:
    """Outputs that the last walk stores and earlier ones keep values in, and names for the rows of these values.

    The first walk that addresses such an output stores all its elements and reads none; only walks address it.
    """
    *earlier, last = reduction.stages
    once = (*reduction.finish, *(stmt for stage in reduction.stages for stmt in stage.then))
    outputs = {param.name for param in reduction.arrays if param.written} - addressed(once)
    found: dict[str, str] = {}
    for name in sorted(outputs) if last.accumulator is None else ():
        walks = [stage for stage in earlier if name in addressed(stage.body, _values(stage))]
        if walks and is_stored(walks[0].body, name) and not _is_read(walks[0], name) and is_stored(last.body, name):
            found[name] = f"{name}.kept"
    return found


def buffer_rows(reduction: ReductionIR, rows: Mapping[str, str]) -> ReductionIR:
    """The reduction with these values in rows that no parameter stands for.

    Requires: rows are those of `kept_rows`, all or some. Ensures: only the last walk addresses their outputs, and only
    to store them.
    """
    if not rows:
        return reduction

    def apart(expr: Expr) -> Expr:
        return Element(rows[expr.param], expr.type) if isinstance(expr, Element) and expr.param in rows else expr

    rewrite = rewriter(apart)

    def stored(stmt: Stmt) -> Stmt:
        """A statement of the last walk: outputs are stored where they were."""
        if isinstance(stmt, Store):
            return Store(stmt.pointer, rewrite(stmt.value), line=stmt.line)
        return map_expressions((stmt,), rewrite)[0]

    stages = []
    for stage in reduction.stages[:-1]:
        assert stage.accumulator is not None, "only the last walk has no accumulator"
        value = replace(stage.accumulator, value=rewrite(stage.accumulator.value))
        stages.append(Stage(map_expressions(stage.body, rewrite), value, stage.then))
    last = reduction.stages[-1]
    return replace(reduction, stages=(*stages, replace(last, body=tuple(map(stored, last.body)))))


def _values(stage: Stage) -> tuple[Expr, ...]:
    return () if stage.accumulator is None else (stage.accumulator.value,)


def _is_read(stage: Stage, name: str) -> bool:
    return any(
        isinstance(each, Load) and isinstance(each.pointer, Element) and each.pointer.param == name
        for each in expressions([*_values(stage), *roots_of(stage.body)])
    )
