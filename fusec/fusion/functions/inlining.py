"""Kernels as values of a trace: programs without loops, and graphs, become expressions over the operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fusec.base.dtypes import BOOL, INT64, STORAGE_FLOATS, DType
from fusec.compiler.lowering import lower_program
from fusec.dispatch.engine import read_call
from fusec.dispatch.spec import PLAIN
from fusec.frontends.python.values import Scalar
from fusec.fusion.functions.reducing import normalised, totals, without_axes
from fusec.fusion.trace.sizes import size_of
from fusec.fusion.trace.trace import Trace, common_phantom, widened
from fusec.fusion.trace.trace_values import ArrayValue, leaves_of, phantom
from fusec.ir import loops as ir
from fusec.ir.expr import Apply, Const, Expr, Lookup, apply, const, convert, scalar_type
from fusec.ir.graph import Count, KernelGraph, Reduce
from fusec.ir.walk import inner_first, rewriter

MAX_DEPTH = 100  # of what one output is


class NotPureError(Exception):
    """A program does what no expression does."""


def outputs_of_call(trace: Trace, kernel: Any, args: Sequence[Any], values: Sequence[ArrayValue]) -> list[ArrayValue]:
    """The outputs of an element-wise kernel. args: what calls of it take. Raises NotPureError."""
    is_plain = kernel.fp == "strict" and not (kernel.checks or kernel.uses_index)
    if not is_plain or any(param.raw or param.non_const for param in kernel.params):
        raise NotPureError
    backend, call = read_call(kernel, tuple(args), None, PLAIN)
    types = call.given(backend).types(kernel)
    program = lower_program(kernel.definition, types, {}, frozenset(call.values))
    adapted = []
    for param, value in zip(kernel.in_params, values, strict=True):
        if param.name in call.values:
            value = trace.adapted(value, types[param.name])
        if value.dtype != types[param.name]:
            raise NotPureError
        adapted.append(value)
    ready = trace.ready(adapted)
    names = [param.name for param in kernel.in_params]
    stored = _Evaluation(program).outputs(dict(zip(names, map(as_stored, ready), strict=True)))
    found = []
    for param in kernel.out_params:
        expr, dtype = stored.get(param.name), types[param.name]
        if expr is None or size_of(expr).depth > MAX_DEPTH:
            raise NotPureError
        found.append(ArrayValue(Scalar(dtype, widened(expr, dtype)), common_phantom(ready, dtype)))
    return found


def as_stored(value: ArrayValue) -> Expr:
    """What a kernel loads of an array of a value."""
    dtype = value.dtype
    return apply("convert", value.expr, target=dtype) if dtype in STORAGE_FLOATS else value.expr


class _Evaluation:
    """A program evaluated for expressions in place of numbers; a branch chooses between the values of both sides."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.functions = {each.name: each for each in program.functions}

    def outputs(self, inputs: Mapping[str, Expr]) -> dict[str, Expr]:
        """What the program stores. inputs: arrays and numbers by name. Raises NotPureError."""
        arrays = {param.name for param in self.program.arrays}
        known = {f"&{name}": value for name, value in inputs.items()}
        known |= {name: value for name, value in inputs.items() if name not in arrays}
        after, result = self._block(self.program.body, known)
        if result is not None:
            raise NotPureError
        return {name[1:]: value for name, value in after.items() if name[0] == "&" and value is not known.get(name)}

    def _block(self, body: Sequence[ir.Stmt], known: dict[str, Expr]) -> tuple[dict[str, Expr], Expr | None]:
        """The values of locals and arrays after some statements, and what they return."""
        known = dict(known)
        for at, stmt in enumerate(body):
            match stmt:
                case ir.Declare(name, DType() as kind, value):
                    known[name] = const(0, kind) if value is None else self._value(value, known)
                case ir.Assign(name, value):
                    known[name] = self._value(value, known)
                case ir.Store(ir.Element(name), value):
                    known[f"&{name}"] = self._value(value, known)
                case ir.Return(Expr() as value) if at == len(body) - 1:
                    return known, self._value(value, known)
                case ir.If(condition, then, orelse):
                    test, rest = self._value(condition, known), body[at + 1 :]
                    if _returns(then) or _returns(orelse):
                        sides = [self._block((*each, *rest), known) for each in (then, orelse)]
                        return self._chosen(test, *sides)
                    sides = [self._block(each, known) for each in (then, orelse)]
                    known, _ = self._chosen(test, *sides)
                case _:
                    raise NotPureError
        return known, None

    def _chosen(
        self, test: Expr, one: tuple[dict[str, Expr], Expr | None], other: tuple[dict[str, Expr], Expr | None]
    ) -> tuple[dict[str, Expr], Expr | None]:
        (left, first), (right, second) = one, other
        if (first is None) != (second is None):
            raise NotPureError
        known = {name: _either(test, left[name], right[name]) for name in left if name in right}
        return known, None if first is None or second is None else _either(test, first, second)

    def _value(self, root: Expr, known: dict[str, Expr]) -> Expr:
        def change(expr: Expr) -> Expr:
            match expr:
                case Const() | Apply() | Lookup():
                    return expr
                case ir.Local(name) if name in known:
                    return known[name]
                case ir.Load(ir.Element(name)) if f"&{name}" in known:
                    return known[f"&{name}"]
                case ir.Element():
                    return expr
                case ir.Call(name, args):
                    return self._called(self.functions[name], args)
                case _:
                    raise NotPureError

        return rewriter(change)(root)

    def _called(self, function: ir.Function, args: Sequence[Expr]) -> Expr:
        names = [name for name, _ in function.params]
        _, result = self._block(function.body, dict(zip(names, args, strict=True)))
        if result is None or not isinstance(function.result, DType):
            raise NotPureError
        return result


def _returns(body: Sequence[ir.Stmt]) -> bool:
    return any(isinstance(each, ir.Return) or any(map(_returns, each.blocks)) for each in body)


def _either(test: Expr, one: Expr, other: Expr) -> Expr:
    return one if one is other else apply("where", convert(test, BOOL), one, other)


# --- graphs --------------------------------------------------------------------------------------------------------


def outputs_of_graph(
    trace: Trace, graph: KernelGraph, values: Sequence[ArrayValue], numbers: Sequence[bool], along: Any
) -> list[ArrayValue]:
    """The outputs of a graph along some axes. numbers: which values are numbers."""
    values = trace.ready(
        [
            trace.adapted(value, name.type) if number else value
            for name, value, number in zip(graph.inputs, values, numbers, strict=True)
        ]
    )
    if any(name.type != value.dtype for name, value in zip(graph.inputs, values, strict=True)):
        raise NotPureError
    shape = common_phantom(values, values[0].dtype).shape
    axes = normalised(along.axis, len(shape))
    walked = next((each for each in values if each.shape == shape), values[0])
    if walked.shape != shape:
        raise NotPureError
    known: dict[Expr, Expr] = {name: as_stored(value) for name, value in zip(graph.inputs, values, strict=True)}
    differs: dict[Expr, bool] = {name: not number for name, number in zip(graph.inputs, numbers, strict=True)}
    for expr in inner_first([value for _, value in graph.outputs]):
        if expr in known:
            continue
        differs[expr] = any(differs[child] for child in expr.children) and not isinstance(expr, Reduce)
        if isinstance(expr, Count):
            known[expr] = trace.count(walked, axes, INT64).expr
        elif isinstance(expr, Reduce):
            if all(trace.leaves[each].phantom.shape != shape for each in leaves_of(known[expr.value])):
                raise NotPureError  # what is combined is smaller than what is walked
            value = ArrayValue(Scalar(expr.type, known[expr.value]), phantom(shape, expr.type.numpy))
            known[expr] = totals(trace, expr.op, value, axes, expr.type).expr
        else:
            known[expr] = expr.rebuild(tuple(known[child] for child in expr.children)) if expr.children else expr
    kept = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    found = []
    for _, root in graph.outputs:
        dtype, is_whole = scalar_type(root), differs[root]
        whole = phantom(shape if is_whole else kept, dtype.numpy)
        result = ArrayValue(Scalar(dtype, widened(known[root], dtype)), whole)
        found.append(result if is_whole or along.keepdims else without_axes(result, axes, trace))
    return found
