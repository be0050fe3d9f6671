"""Shared values: where several walks over a chunk compute the same value of an element, the value can be held.

It replaces the elements that it is made of. In a softmax of `q @ k.T`, for example, threads hold one score for each
element, and not all of its factors; in one of bfloat16, they hold its power in float32 once the maximum is known.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

from fusec.base.dtypes import DType
from fusec.base.ops import TABLE
from fusec.base.records import replace
from fusec.ir import loops as ir
from fusec.ir.expr import Apply, Expr, type_of
from fusec.ir.reductions import ReductionIR, Stage, visible
from fusec.ir.walk import expressions, inner_first, map_expressions, rewriter, roots_of
from fusec.passes.eliminate_dead_code import eliminate_dead_code
from fusec.passes.reductions import run_on_reduction


def any_value(value: Expr) -> bool:
    """Whether to share a value, if any will do."""
    del value
    return True


def is_costly(value: Expr) -> bool:
    """Whether a value calls functions."""
    return any(
        isinstance(part, ir.Call) or (isinstance(part, Apply) and not TABLE[part.op].primitive)
        for part in expressions([value])
    )


def shared_values(
    reduction: ReductionIR, inputs: Mapping[str, DType], is_wanted: Callable[[Expr], bool] = any_value
) -> tuple[ReductionIR, dict[str, DType]]:
    """The reduction with such values in rows that no parameter stands for, and the dtypes of these rows.

    inputs: the arrays that several walks read, which are held otherwise. is_wanted: which values to share. Requires: no
    walk stores to inputs. Ensures: the first walk that computes a value stores it, and later walks load it.
    """
    stages = reduction.stages
    if not inputs or not all(isinstance(stmt, ir.Declare | ir.Store) for each in stages for stmt in each.body):
        return reduction, {}
    walks = [_SpelledOut(stage) for stage in stages]
    known_to_all = {param.name for param in reduction.params}
    known_to_all |= {name for name, _ in visible(reduction, len(stages))}  # once a walk has computed it
    found = [each for each in _computed_again(walks, inputs, known_to_all) if is_wanted(each)]
    rows = {f"_value{at}.kept": value for at, value in enumerate(found)}
    types = {name: type_of(value) for name, value in rows.items()}
    kinds = {name: kind for name, kind in types.items() if isinstance(kind, DType)}
    if not rows or len(kinds) < len(types):
        return reduction, {}
    changed, known = [], set[str]()
    for stage, walk in zip(stages, walks, strict=True):
        new = [name for name, value in rows.items() if name not in known and value in walk.values]
        loads = {rows[name]: ir.Load(ir.element(name, kinds[name], const=True), kinds[name]) for name in known}
        locals_: dict[Expr, ir.Local] = {
            rows[name]: ir.Local(f"{name.partition('.')[0]}_here", kinds[name]) for name in new
        }
        held = [ir.Declare(own.name, own.type, walk.values[value]) for value, own in locals_.items()]
        stores = [ir.Store(ir.element(name, kinds[name]), locals_[rows[name]]) for name in new]
        changed.append(walk.loading(replace(stage, body=(*stage.body, *held, *stores)), loads, locals_))
        known.update(new)
    return run_on_reduction(replace(reduction, stages=tuple(changed)), eliminate_dead_code), kinds


class _SpelledOut:
    """A walk whose locals are spelled out. roots: what it needs. values: how each of its expressions is written."""

    def __init__(self, stage: Stage) -> None:
        named: dict[Expr, Expr] = {}
        self._spelled_out = rewriter(lambda expr: named.get(expr, expr))
        for stmt in stage.body:
            if isinstance(stmt, ir.Declare) and stmt.value is not None:
                named[ir.Local(stmt.name, stmt.type)] = self._spelled_out(stmt.value)
        value = [] if stage.accumulator is None else [stage.accumulator.value]
        roots = [*value, *roots_of(stmt for stmt in stage.body if isinstance(stmt, ir.Store))]
        self.roots = [self._spelled_out(each) for each in roots]
        self.written = {each: self._spelled_out(each) for each in expressions([*value, *roots_of(stage.body)])}
        self.values = {whole: each for each, whole in self.written.items()}

    def loading(self, stage: Stage, loads: Mapping[Expr, Expr], known: Mapping[Expr, Expr]) -> Stage:
        """The walk with loads in place of some values. known: what else accumulated values are made of."""
        accumulator, change = stage.accumulator, self._with(loads)
        if accumulator is not None:
            accumulator = replace(accumulator, value=self._with({**loads, **known})(accumulator.value))
        return replace(stage, body=map_expressions(stage.body, change), accumulator=accumulator)

    def _with(self, others: Mapping[Expr, Expr]) -> Callable[[Expr], Expr]:
        """A change that puts others in place of some values."""
        known = {each: others[whole] for each, whole in self.written.items() if whole in others}
        return rewriter(lambda expr: expr, known)


def _computed_again(walks: list[_SpelledOut], inputs: Mapping[str, DType], params: Container[str]) -> list[Expr]:
    """The greatest values that later walks compute again of elements of inputs; none if they read elements, too.

    params: whose values all walks know that read them, unlike those of other locals.
    """
    before = set[Expr]()
    found: dict[Expr, None] = {}
    of_elements, of_locals = set[Expr](), set[Expr]()
    for walk in walks:
        for expr in inner_first(walk.roots):
            if _is_element(expr, inputs) or not of_elements.isdisjoint(expr.children):
                of_elements.add(expr)
            if (isinstance(expr, ir.Local) and expr.name not in params) or not of_locals.isdisjoint(expr.children):
                of_locals.add(expr)
        waiting, seen = [*walk.roots] if before else [], set[Expr]()
        while waiting:
            expr = waiting.pop()
            if expr in seen:
                continue
            seen.add(expr)
            if expr not in before or expr not in of_elements or expr in of_locals:
                waiting += expr.children
            elif _is_element(expr, inputs):
                return []
            else:
                found[expr] = None
        before.update(walk.values)
    return list(found)


def _is_element(expr: Expr, inputs: Mapping[str, DType]) -> bool:
    return isinstance(expr, ir.Load) and isinstance(expr.pointer, ir.Element) and expr.pointer.param in inputs
