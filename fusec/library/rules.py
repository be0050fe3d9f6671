"""The rules of built-in reductions: the accumulated values, their combination, and the work on the total."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from fusec.base.dtypes import BOOL, DType, real_type
from fusec.ir.expr import apply, const
from fusec.library.argextrema import place
from fusec.library.formula import REST, Formula, FormulaPart, Lowered, Outputs, Rule, one_walk
from fusec.library.moments import logsumexp, spread
from fusec.math.value import Value, make_complex, sqrt, unary, where

Build = Callable[[Formula, Sequence[int]], Lowered]
LOGICAL = {"add": "bitwise_or", "multiply": "bitwise_and"}


def number(value: object, dtype: DType) -> Value:
    """A constant."""
    return Value(const(value, dtype))


def started(formula: Formula, op: str, total: Value) -> Value:
    """The total combined with the number that takes part in it."""
    if not formula.is_started:
        return total
    return Value(apply(op, formula.number("initial").expr, total.expr))


def _folded(arithmetic: str, start: int) -> Build:
    """The combination of all elements by an op that has a neutral element; of bools, by its logical counterpart."""

    def rule(formula: Formula, _: Sequence[int]) -> Lowered:
        held = formula.held
        op = LOGICAL[arithmetic] if held == BOOL else arithmetic
        signed = start == 0 and formula.is_started and held.kind in ("float", "complex") and not formula.skips_nan
        neutral = (complex(-0.0, -0.0) if held.is_complex else -0.0) if signed else start  # initial=-0.0 stays
        part = FormulaPart("s", op, formula.element().to(held), number(neutral, held))
        return one_walk(formula, [part], lambda total: [started(formula, op, total["s"])])

    return rule


def _extreme(op: str) -> Build:
    """The least or greatest element; of bools, none or any of them."""

    def rule(formula: Formula, _: Sequence[int]) -> Lowered:
        part = _extreme_part("s", op, formula)
        return one_walk(
            formula, [part], lambda total: [started(formula, part.op, total["s"])], has_value=formula.is_started
        )

    return rule


def _extreme_part(name: str, op: str, formula: Formula) -> FormulaPart:
    held, upwards = formula.held, op in ("maximum", "fmax")
    if held == BOOL:
        op = "bitwise_or" if upwards else "bitwise_and"
        return FormulaPart(name, op, formula.element(), number(not upwards, BOOL))
    value = formula.element()
    if formula.skips_nan and held.is_float:
        op = "fmax" if upwards else "fmin"
    if formula.is_started:
        return FormulaPart(name, op, value, formula.number("initial"))
    return FormulaPart(name, op, value, number(_end(held, not upwards, skips=formula.skips_nan), held))


def _end(dtype: DType, upper: bool, *, skips: bool) -> object:
    """The last value of a dtype at one end; nan if that is what takes no part."""
    if dtype.is_float:
        return np.nan if skips else np.inf if upper else -np.inf
    info = np.iinfo(dtype.numpy)
    return info.max if upper else info.min


def _both(formula: Formula, _: Sequence[int]) -> Lowered:
    parts = [_extreme_part("low", "minimum", formula), _extreme_part("high", "maximum", formula)]
    return one_walk(formula, parts, lambda total: [total["low"], total["high"]], has_value=False)


def _ptp(formula: Formula, _: Sequence[int]) -> Lowered:
    parts = [_extreme_part("low", "minimum", formula), _extreme_part("high", "maximum", formula)]
    return one_walk(formula, parts, lambda total: [total["high"] - total["low"]], has_value=False)


def _logical(op: str) -> Build:
    def rule(formula: Formula, _: Sequence[int]) -> Lowered:
        part = FormulaPart("s", op, _nonzero(formula), number(op == "bitwise_and", BOOL))
        return one_walk(formula, [part], lambda total: [total["s"]])

    return rule


def _nonzero(formula: Formula) -> Value:
    """Whether the element is not zero; complex ones are compared part by part."""
    x = formula.element()
    if x.dtype.is_complex:
        return x.real.ne(0) | x.imag.ne(0)
    return x.to(BOOL)


def _count(formula: Formula, _: Sequence[int]) -> Lowered:
    part = FormulaPart("s", "add", _nonzero(formula).to(formula.held), number(0, formula.held))
    return one_walk(formula, [part], lambda total: [total["s"]])


def _mean(formula: Formula, _: Sequence[int]) -> Lowered:
    held, real = formula.held, real_type(formula.held)
    parts = [FormulaPart("s", "add", formula.element().to(held), number(0, held))]
    if formula.condition is not None:
        parts.append(FormulaPart("n", "add", number(1, real), number(0, real)))

    def finish(total: Mapping[str, Value]) -> Sequence[Value]:
        count = total["n"] if "n" in total else REST.to(real)
        s = total["s"]
        return [make_complex(s.real / count, s.imag / count) if held.is_complex else s / count]

    return one_walk(formula, parts, finish)


def _about(formula: Formula, _: Sequence[int]) -> Lowered:
    """The mean square of distances from means that are known, or its root."""
    held, real = formula.held, real_type(formula.held)
    far = formula.element().to(held) - formula.element(1).to(held)
    square = far.real * far.real + far.imag * far.imag if held.is_complex else far * far
    parts = [FormulaPart("s", "add", square, number(0, real))]
    if formula.condition is not None:
        parts.append(FormulaPart("n", "add", number(1, real), number(0, real)))

    def finish(total: Mapping[str, Value]) -> Sequence[Value]:
        free = (total["n"] if "n" in total else REST.to(real)) - formula.number("correction")
        variance = total["s"] / where(free <= 0, np.nan if formula.skips_nan else 0.0, free)
        return [variance if formula.outputs[0][0] == "var" else sqrt(variance)]

    return one_walk(formula, parts, finish)


def _dot(formula: Formula, _: Sequence[int]) -> Lowered:
    x, y = (formula.element(at).to(formula.held) for at in (0, 1))
    if formula.rule.name == "vecdot" and x.dtype.is_complex:
        x = unary("conj", x)
    return one_walk(formula, [FormulaPart("s", "add", x * y, number(0, formula.held))], lambda total: [total["s"]])


# --- norms ---------------------------------------------------------------------------------------------------------


def _size(formula: Formula) -> Value:
    """The absolute value of an element."""
    x = formula.element()
    if x.dtype.is_complex:
        return unary("abs_complex", x).to(formula.held)
    return abs(x.to(formula.held))


def _norm(value: Callable[[Formula], Value], op: str, finish: Callable[[Formula, Value], Value]) -> Build:
    def rule(formula: Formula, _: Sequence[int]) -> Lowered:
        part = FormulaPart("s", op, value(formula), number(0, formula.held))
        outputs: Outputs = lambda total: [finish(formula, total["s"])]  # noqa: E731 - one of several
        return one_walk(formula, [part], outputs, has_value=op != "minimum")

    return rule


def _squared(formula: Formula) -> Value:
    x = formula.element()
    if x.dtype.is_complex:
        return x.real * x.real + x.imag * x.imag
    x = x.to(formula.held)
    return x * x


def _to_power(formula: Formula) -> Value:
    return Value(apply("pow", _size(formula).expr, formula.number("p").expr))


def _root(formula: Formula, total: Value) -> Value:
    return Value(apply("pow", total.expr, (1 / formula.number("p")).expr))


BUILDS: Mapping[str, Build] = {
    "sum": _folded("add", 0),
    "prod": _folded("multiply", 1),
    "min": _extreme("minimum"),
    "max": _extreme("maximum"),
    "minmax": _both,
    "ptp": _ptp,
    "any": _logical("bitwise_or"),
    "all": _logical("bitwise_and"),
    "count_nonzero": _count,
    "mean": _mean,
    "vecdot": _dot,
    "mulsum": _dot,
    "norm_zero": _norm(lambda formula: _nonzero(formula).to(formula.held), "add", lambda _, total: total),
    "norm_one": _norm(_size, "add", lambda _, total: total),
    "norm_two": _norm(_squared, "add", lambda _, total: sqrt(total)),
    "norm_high": _norm(_size, "maximum", lambda _, total: total),
    "norm_low": _norm(_size, "minimum", lambda _, total: total),
    "norm_p": _norm(_to_power, "add", _root),
    "argmax": place(upwards=True),
    "argmin": place(upwards=False),
    "spread": spread,
    "about": _about,
    "logsumexp": logsumexp,
}
RULES = {name: Rule(name, build) for name, build in BUILDS.items()}
