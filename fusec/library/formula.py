"""Formulas: reductions written as expressions, in one walk along the axis unless `fusec.library.moments` needs two."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fusec.arguments.signature import Parameter, Signature
from fusec.base.dtypes import BOOL, INT64, DType, compute_type
from fusec.base.records import dataclass
from fusec.compiler.lowering import lower_reduction
from fusec.ir import loops as ir
from fusec.ir.expr import Expr, Pointer, Struct, Type, apply
from fusec.ir.reductions import REDUCED, Accumulator, ReductionIR, Stage
from fusec.math.value import Term, unary, where

if TYPE_CHECKING:
    from fusec.kinds.launch import Request

Outputs = Callable[[Mapping[str, Term]], Sequence[Term]]
"""From the totals of parts to the outputs."""

Fields = tuple[tuple[str, DType], ...]
"""The parts of an accumulator, by name."""

Lowered = tuple[ReductionIR, ir.Program]
"""A reduction, and the program for totals of no elements."""


@dataclass(frozen=True)
class Rule:
    """The definition of a built-in reduction; `fusec.library.rules` lists all of them."""

    name: str
    build: Callable[[Formula, Sequence[int]], Lowered]  # of the reduced axes, in C order


@dataclass(frozen=True)
class Formula:
    """The source of a built-in reduction.

    A number is an input passed by value, of the real type of `held`; `initial`, of `held` itself, takes part in every
    total.
    """

    name: str  # in messages
    rule: Rule
    given: tuple[DType, ...]  # dtypes of the inputs x and y
    held: DType  # of the accumulator
    outputs: tuple[tuple[str, DType], ...]
    numbers: tuple[tuple[str, DType], ...] = ()
    masked: bool = False  # a bool input `where` selects the elements that take part
    skips_nan: bool = False
    index: DType = INT64  # of positions

    @property
    def texts(self) -> dict[str, Any]:
        """All fields."""
        return {key: repr(value) for key, value in vars(self).items()} | {"rule": self.rule.name}

    @property
    def is_started(self) -> bool:
        """Whether a number takes part in every total."""
        return any(name == "initial" for name, _ in self.numbers)

    @property
    def arrays(self) -> list[tuple[str, DType]]:
        """The inputs that are arrays."""
        return [*zip("xy", self.given, strict=False), *([("where", BOOL)] if self.masked else [])]

    def number(self, name: str) -> Term:
        """An input passed by value."""
        return Term(ir.Local(name, dict(self.numbers)[name]))

    # --- elements ------------------------------------------------------------------------------------------------

    def element(self, at: int = 0) -> Term:
        """An element of an input, in the type of the computation."""
        return Term(ir.Local("xy"[at], self.given[at])).to(compute_type(self.given[at]))

    @property
    def condition(self) -> Term | None:
        """Whether an element takes part; None if all do."""
        found = Term(ir.Local("where", BOOL)) if self.masked else None
        if self.skips_nan and self.given[0].kind in ("float", "complex"):
            is_number = ~unary("isnan", self.element())
            found = is_number if found is None else found & is_number
        return found

    def chosen(self, value: Term, neutral: Term) -> Term:
        """The value of an element, or its replacement if it does not take part."""
        takes = self.condition
        return value if takes is None else where(takes, value, neutral)

    @property
    def loads(self) -> tuple[ir.Stmt, ...]:
        """The elements of all inputs as locals."""
        return tuple(
            ir.Declare(name, dtype, ir.Load(ir.Element(name, Pointer(dtype, "global", const=True)), dtype))
            for name, dtype in self.arrays
        )

    # --- what a reduction consists of -----------------------------------------------------------------------------

    @property
    def scalars(self) -> tuple[ir.Param, ...]:
        """The numbers, and the number of elements of a total."""
        return (*(ir.ScalarParam(name, dtype) for name, dtype in self.numbers), ir.ScalarParam(REDUCED, INT64))

    @property
    def params(self) -> tuple[ir.Param, ...]:
        """All parameters."""
        return (*(ir.ArrayParam(name, dtype) for name, dtype in self.arrays), *self.scalars, *self.stored)

    @property
    def stored(self) -> tuple[ir.ArrayParam, ...]:
        """The outputs as parameters."""
        return tuple(ir.ArrayParam(name, dtype, written=True, read=False) for name, dtype in self.outputs)

    def stores(self, values: Sequence[Term]) -> tuple[ir.Stmt, ...]:
        """The outputs of one total."""
        return tuple(
            ir.Store(ir.Element(name, Pointer(dtype, "global")), value.to(dtype).expr)
            for (name, dtype), value in zip(self.outputs, values, strict=True)
        )

    def empty(self, neutral: Mapping[str, Term], finish: Outputs, *, has_value: bool) -> ir.Program:
        """The program for totals of no elements."""
        body = self.stores(finish(neutral)) if has_value else ()
        return ir.Program(self.name, (*self.scalars, *self.stored), body)


@lower_reduction.register(Formula)
def _lowered(formula: Formula, request: Request) -> Lowered:
    return formula.rule.build(formula, request.reduced)


@dataclass(frozen=True)
class FormulaPart:
    """One of the values that a walk accumulates."""

    name: str
    op: str  # of two operands
    value: Term  # of an element
    neutral: Term  # changes nothing; in place of elements that take no part


REST = Term(ir.Local(REDUCED, INT64))  # elements of a total, over all axes


def one_walk(
    formula: Formula,
    parts: Sequence[FormulaPart],
    finish: Outputs,
    *,
    has_value: bool = True,
) -> Lowered:
    """A reduction that accumulates some parts side by side.

    finish: from totals, by the names of the parts, to outputs. has_value: totals of no elements have one.
    """
    values = [formula.chosen(part.value, part.neutral) for part in parts]
    fields = tuple((part.name, part.value.dtype) for part in parts)

    def combine(a: Mapping[str, Term], b: Mapping[str, Term]) -> Sequence[Term]:
        return [Term(apply(part.op, a[part.name].expr, b[part.name].expr)) for part in parts]

    function = combining(formula.name, fields, combine)
    stages = (stage_of(formula, "part", values, function),)
    neutral = {part.name: part.neutral for part in parts}
    stores = formula.stores(finish(parts_named("total", fields)))
    whole = list(parts_named("part", fields).values())
    reduction = reduction_of(formula, stages, whole, (function,), stores)
    return reduction, formula.empty(neutral, finish, has_value=has_value)


def stage_of(
    formula: Formula, name: str, values: Sequence[Term], combine: ir.Function, then: tuple[ir.Stmt, ...] = ()
) -> Stage:
    """A walk along the axis that accumulates values in a local. then: what follows it."""
    kind = kind_of(combine)
    return Stage(formula.loads, Accumulator(name, kind, made(values, kind), combine.name), then)


def reduction_of(
    formula: Formula, stages: tuple[Stage, ...], whole: Sequence[Term], functions: tuple[ir.Function, ...],
    stores: tuple[ir.Stmt, ...],
) -> ReductionIR:  # fmt: skip
    """A reduction whose last function combines what chunks come to."""
    kind = kind_of(functions[-1])
    total = Accumulator("total", kind, made(whole, kind), functions[-1].name)
    return ReductionIR(formula.name, formula.params, stages, total, stores, functions)


def combining(
    name: str,
    fields: Sequence[tuple[str, DType]],
    combine: Callable[[Mapping[str, Term], Mapping[str, Term]], Sequence[Term]],
) -> ir.Function:
    """A function of two accumulators with these fields, or of two scalars if there is one field."""
    if len(fields) == 1:
        ((only, dtype),) = fields
        a, b = ({only: Term(ir.Local(side, dtype))} for side in "ab")
        (result,) = combine(a, b)
        return ir.Function(f"{name}_combine", (("a", dtype), ("b", dtype)), dtype, (ir.Return(result.expr),))
    kind = Struct(f"{name}_parts", tuple(fields))
    a, b = ({n: Term(ir.Field(ir.Local(side, kind), n, dtype)) for n, dtype in fields} for side in "ab")
    return ir.Function(f"{name}_combine", (("a", kind), ("b", kind)), kind, (ir.Return(made(combine(a, b), kind)),))


def kind_of(function: ir.Function) -> Type:
    """The operand type of a combining function."""
    assert function.result is not None, "a combination is a value"
    return function.result


def made(values: Sequence[Term], kind: Type) -> Expr:
    """The accumulator of some parts."""
    return ir.Make(tuple(value.expr for value in values), kind) if isinstance(kind, Struct) else values[0].expr


def parts_named(name: str, fields: Sequence[tuple[str, DType]]) -> dict[str, Term]:
    """The locals that hold the parts of an accumulator."""
    if len(fields) == 1:
        ((only, dtype),) = fields
        return {only: Term(ir.Local(name, dtype))}
    return {field: Term(ir.Local(f"{name}_{field}", dtype)) for field, dtype in fields}


@lru_cache(maxsize=1024)
def signature_of(formula: Formula) -> Signature:
    """The inputs and outputs as those of a kernel."""
    inputs = (*formula.arrays, *formula.numbers)
    return typed_signature(formula.name, inputs, formula.outputs)


def typed_signature(name: str, inputs: Iterable[tuple[str, DType]], outputs: Iterable[tuple[str, DType]]) -> Signature:
    """A signature whose parameters have dtypes."""
    sides = (tuple(Parameter(each, dtype.name, dtype) for each, dtype in side) for side in (inputs, outputs))
    return Signature(name, *sides)
