"""Checks of reductions and scans: a kernel that runs before them and only looks at indices.

Arguments are indexed nowhere else: what combines and what finishes sees totals and numbers. So a checked call first
runs the texts of one element as an elementwise kernel with checks, which stores nothing but the first violation, and
what sums and products of integers combine, for totals without a width.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fusec.arguments.operands import LISTS, Array
from fusec.arguments.signature import Parameter, Signature
from fusec.base.dtypes import BOOL, INT64, DType
from fusec.base.records import dataclass, replace
from fusec.compiler import reduction_pipeline
from fusec.compiler.lowering import lower_program
from fusec.compiler.pipeline import Source
from fusec.compiler.scan_pipeline import ScanDefinition
from fusec.dispatch import checked, combining, exact_totals
from fusec.dispatch.axes import normalised
from fusec.dispatch.call import KernelCall
from fusec.dispatch.elementwise import line_of
from fusec.dispatch.exact_totals import RunningOrder
from fusec.dispatch.planned import Planned
from fusec.dispatch.spec import Bound, CallOptions
from fusec.errors.checks import LocalArrayAfterTheCheck
from fusec.frontends.python.definition import ReductionFunctions
from fusec.ir.expr import Const
from fusec.ir.loops import Declare, Element, LocalArray, Offset, Program, ScalarParam, Stmt, Store
from fusec.ir.reductions import KEPT, REDUCED, TOTALS, ReductionIR, stage_program
from fusec.ir.walk import expressions, operands, statements
from fusec.kinds.launch import MASK, Request


@dataclass(frozen=True)
class ElementSource:
    """The value of one element of a reduction, as the definition of a kernel without outputs.

    keeps: it is the output.
    """

    inner: Source
    request: Request
    keeps: bool = False

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.inner.name

    @property
    def texts(self) -> dict[str, Any]:
        """Everything that the meaning depends on."""
        return {**self.inner.texts, "element of": self.request.key, "keeps": self.keeps}


@lower_program.register(ElementSource)
def _element(
    source: ElementSource, types: Mapping[str, DType], ndims: Mapping[str, int], scalars: frozenset[str]
) -> Program:
    del types, ndims, scalars
    reduction, _ = reduction_pipeline.lower(source.inner, source.request)
    program = stage_program(reduction, 0)
    text = "" if program.source is None else program.source.text
    only = 0 if "\n" in text else 1  # the line of an expression that is a text of its own
    outputs = {param.name for param in reduction.arrays if param.written}
    inputs = tuple(param for param in reduction.params if param.name not in outputs)
    if source.keeps:
        body = tuple(stmt if stmt.line else replace(stmt, line=only) for stmt in program.body)
        return replace(program, params=(*inputs, program.params[-1]), body=body)
    body = tuple(_kept_apart(stmt, number, only) for number, stmt in enumerate(program.body))
    return replace(program, params=inputs, body=body)


def _kept_apart(stmt: Stmt, number: int, only: int) -> Stmt:
    """A statement at its line; a store of what the element is worth is a local, which goes nowhere."""
    if isinstance(stmt, Store) and isinstance(stmt.pointer, Element) and stmt.pointer.param.startswith(KEPT):
        return Declare(f"{KEPT}_{number}", stmt.pointer.type.element, stmt.value, line=stmt.line or only)
    return stmt if stmt.line else replace(stmt, line=only)


def check(kernel: Planned, found: Bound, call: KernelCall[Any]) -> None:
    """Test every index that a call of a reduction or scan would use. Raises IndexOutside or CannotCheck.

    found: what the call comes to. Of host arrays also at totals of integers that wrap.
    """
    key, where = found.request, call.options.where
    if key not in kernel.checkers:
        kernel.checkers.keep(key, checker_of(kernel, found))
    checker = kernel.checkers.get(key)
    if checker is None or 0 in found.shape:
        return
    given = [np.asarray(each) if isinstance(each, LISTS) else each for each in call.args[: kernel.nin]]
    if found.request.masked:
        given.append(np.asarray(where) if isinstance(where, (bool, np.bool_, list)) else where)
    numbers = (found.sizes.get(name, 0) for name in _numbers(kernel, found.request))
    outputs = checked.run(checker, (*given, *numbers), CallOptions(stream=call.options.stream))
    if outputs and isinstance(outputs[0], np.ndarray):
        _compare(kernel, found.request, outputs[0], call.options)


def _compare(kernel: Planned, request: Request, values: Array, options: CallOptions) -> None:
    """Compare totals with those that integers without a width have. Raises TotalWraps."""
    definition = kernel.definition
    op = combining.checked_op(reduction_pipeline.lower(definition, request)[0])
    axes = normalised(kernel.name, options.axis, values.shape)
    if isinstance(definition, ScanDefinition):
        axis = axes[0] if axes else 0
        exact_totals.check_running(kernel.name, op, values, RunningOrder(axis, definition.exclusive, options.reverse))
    else:
        exact_totals.check_totals(kernel.name, op, values, axes, None)


def checker_of(kernel: Planned, found: Bound) -> Planned | None:
    """The kernel that tests indices; None if there are none."""
    request, types = found.request, found.types
    inputs = [replace(each, type_name=types[each.name].name, dtype=types[each.name]) for each in kernel.in_params]
    if request.masked:
        inputs.append(Parameter(MASK, "bool", BOOL))
    inputs += [Parameter(name, "int64", INT64) for name in _numbers(kernel, request)]
    inner = kernel.definition
    if isinstance(inner, ReductionFunctions) and "bounds" in kernel.checks:
        inner = replace(inner, checked=True)
    if "bounds" in kernel.checks:
        _refuse_what_runs_later(kernel.name, inner, request)
    outputs: tuple[Parameter, ...] = ()
    if "wrap" in kernel.checks:
        outputs = _combined(kernel, reduction_pipeline.lower(inner, request)[0])
    source = ElementSource(inner, request, bool(outputs))
    signature = Signature(kernel.name, tuple(inputs), outputs)
    plain = Planned(source, signature, reduce_dims=False, uses_index=True, fp=kernel.fp)
    made = checked.checked(plain, kernel.checks)
    assert isinstance(made.definition, checked.CheckedSource), "a checked kernel"
    _, sites = made.definition.checked(dict(request.types), dict(request.ndims), request.scalars)
    return made if sites or outputs else None


def _combined(kernel: Planned, reduction: ReductionIR) -> tuple[Parameter, ...]:
    """The output for what is combined, if totals may wrap. Raises CombinationNotChecked."""
    definition = kernel.definition
    if not combining.checked_op(reduction, not (isinstance(definition, ScanDefinition) and definition.segments)):
        return ()
    held = reduction.stages[0].accumulator
    assert held is not None, "something is combined"
    assert isinstance(held.type, DType), "sums and products are numbers"
    return (Parameter(f"{KEPT}0", held.type.name, held.type),)


def _refuse_what_runs_later(name: str, definition: Source, request: Request) -> None:
    """What combines, what finishes and functions run after the check, so there is nothing to check in them.

    Raises LocalArrayAfterTheCheck; the front end raises AssertionAfterTheCheck.
    """
    reduction, _ = reduction_pipeline.lower(definition, request)
    bodies = [*(function.body for function in reduction.functions), reduction.finish]
    for stmt in (stmt for body in bodies for stmt in statements(body)):
        for expr in expressions(operands(stmt)):
            if isinstance(expr, Offset) and isinstance(expr.pointer, LocalArray) and not isinstance(expr.offset, Const):
                raise LocalArrayAfterTheCheck(name).at(line_of(reduction, stmt.line))


def _numbers(kernel: Planned, request: Request) -> list[str]:
    """The numbers that texts may ask for, as parameters."""
    reduction, _ = reduction_pipeline.lower(kernel.definition, request)
    names = [param.name for param in reduction.params if isinstance(param, ScalarParam)]
    return [name for name in names if name in (REDUCED, TOTALS)]
