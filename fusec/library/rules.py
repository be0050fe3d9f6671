"""The rules of built-in reductions: the accumulated values, their combination, and the work on the total."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from fusec.base.dtypes import BOOL, DType, real_type
from fusec.ir.expr import apply, const
from fusec.library.argextrema import end_of, place
from fusec.library.formula import REST, Formula, FormulaPart, Lowered, Rule, one_walk
from fusec.library.moments import logsumexp, spread, variance
from fusec.math.moments import over, square
from fusec.math.value import Term, sqrt, unary

Build = Callable[[Formula, Sequence[int]], Lowered]
LOGICAL = {"add": "bitwise_or", "multiply": "bitwise_and"}


def number(value: object, dtype: DType) -> Term:
    """A constant."""
    return Term(const(value, dtype))


def started(formula: Formula, op: str, total: Term) -> Term:
    """The total combined with the number that takes part in it."""
    if not formula.is_started:
        return total
    return Term(apply(op, formula.number("initial").expr, total.expr))


def summand(op: str, value: Term, neutral: complex, name: str = "s") -> FormulaPart:
    """A value that an op combines, which has a neutral number."""
    return FormulaPart(name, op, value, number(neutral, value.dtype))


def _single(
    formula: Formula, part: FormulaPart, finish: Callable[[Term], Term] | None = None, *, has_value: bool = True
) -> Lowered:
    """The combination of one value of each element."""
    return one_walk(formula, [part], lambda total: [finish(total["s"]) if finish else total["s"]], has_value=has_value)


def _folded(arithmetic: str, start: int) -> Build:
    """The combination of all elements by an op that has a neutral element; of bools, by its logical counterpart."""

    def rule(formula: Formula, _: Sequence[int]) -> Lowered:
        held = formula.held
        op = LOGICAL[arithmetic] if held == BOOL else arithmetic
        signed = start == 0 and formula.is_started and held.kind in ("float", "complex") and not formula.skips_nan
        neutral = (complex(-0.0, -0.0) if held.is_complex else -0.0) if signed else start  # initial=-0.0 stays
        return _single(formula, summand(op, formula.element().to(held), neutral), partial(started, formula, op))

    return rule


def _extreme(op: str) -> Build:
    """The least or greatest element; of bools, none or any of them."""

    def rule(formula: Formula, _: Sequence[int]) -> Lowered:
        part = _extreme_part("s", op, formula)
        return _single(formula, part, partial(started, formula, part.op), has_value=formula.is_started)

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
    none = np.nan if formula.skips_nan and held.is_float else end_of(held, not upwards)
    return FormulaPart(name, op, value, number(none, held))


def _ends(finish: Callable[[Term, Term], Sequence[Term]]) -> Build:
    """What is made of the least and the greatest element."""

    def rule(formula: Formula, _: Sequence[int]) -> Lowered:
        parts = [_extreme_part("low", "minimum", formula), _extreme_part("high", "maximum", formula)]
        return one_walk(formula, parts, lambda total: finish(total["low"], total["high"]), has_value=False)

    return rule


def _logical(op: str) -> Build:
    return lambda formula, _: _single(formula, summand(op, _nonzero(formula), op == "bitwise_and"))


def _nonzero(formula: Formula) -> Term:
    """Whether the element is not zero; complex ones are compared part by part."""
    x = formula.element()
    if x.dtype.is_complex:
        return x.real.ne(0) | x.imag.ne(0)
    return x.to(BOOL)


def _count(formula: Formula, _: Sequence[int]) -> Lowered:
    return _single(formula, summand("add", _nonzero(formula).to(formula.held), 0))


def _averaged(formula: Formula, value: Term, finish: Callable[[Term, Term], Term]) -> Lowered:
    """What is made of the sum of a value and of the number of elements that take part."""
    real = real_type(formula.held)
    parts = [summand("add", value, 0)]
    if formula.condition is not None:
        parts.append(summand("add", number(1, real), 0, "n"))
    return one_walk(formula, parts, lambda total: [finish(total["s"], total["n"] if "n" in total else REST.to(real))])


def _mean(formula: Formula, _: Sequence[int]) -> Lowered:
    return _averaged(formula, formula.element().to(formula.held), over)


def _about(formula: Formula, _: Sequence[int]) -> Lowered:
    """The mean square of distances from means that are known, or its root."""
    far = formula.element().to(formula.held) - formula.element(1).to(formula.held)

    def finish(squares: Term, count: Term) -> Term:
        found = variance(formula, squares, count)
        return found if formula.outputs[0][0] == "var" else sqrt(found)

    return _averaged(formula, square(far), finish)


def _dot(formula: Formula, _: Sequence[int]) -> Lowered:
    x, y = (formula.element(at).to(formula.held) for at in (0, 1))
    if formula.rule.name == "vecdot" and x.dtype.is_complex:
        x = unary("conj", x)
    return _single(formula, summand("add", x * y, 0))


# --- norms ---------------------------------------------------------------------------------------------------------


def _size(formula: Formula) -> Term:
    """The absolute value of an element."""
    x = formula.element()
    if x.dtype.is_complex:
        return unary("abs_complex", x).to(formula.held)
    return abs(x.to(formula.held))


def _norm(
    value: Callable[[Formula], Term], op: str, finish: Callable[[Formula, Term], Term] = lambda _, total: total
) -> Build:
    return lambda formula, _: _single(
        formula, summand(op, value(formula), 0), partial(finish, formula), has_value=op != "minimum"
    )


def _squared(formula: Formula) -> Term:
    x = formula.element()
    return square(x if x.dtype.is_complex else x.to(formula.held))


def _to_power(formula: Formula) -> Term:
    return Term(apply("pow", _size(formula).expr, formula.number("p").expr))


def _root(formula: Formula, total: Term) -> Term:
    return Term(apply("pow", total.expr, (1 / formula.number("p")).expr))


BUILDS: Mapping[str, Build] = {
    "sum": _folded("add", 0),
    "prod": _folded("multiply", 1),
    "min": _extreme("minimum"),
    "max": _extreme("maximum"),
    "minmax": _ends(lambda low, high: [low, high]),
    "ptp": _ends(lambda low, high: [high - low]),
    "any": _logical("bitwise_or"),
    "all": _logical("bitwise_and"),
    "count_nonzero": _count,
    "mean": _mean,
    "vecdot": _dot,
    "mulsum": _dot,
    "norm_zero": _norm(lambda formula: _nonzero(formula).to(formula.held), "add"),
    "norm_one": _norm(_size, "add"),
    "norm_two": _norm(_squared, "add", lambda _, total: sqrt(total)),
    "norm_high": _norm(_size, "maximum"),
    "norm_low": _norm(_size, "minimum"),
    "norm_p": _norm(_to_power, "add", _root),
    "argmax": place(upwards=True),
    "argmin": place(upwards=False),
    "spread": spread,
    "about": _about,
    "logsumexp": logsumexp,
}
RULES = {name: Rule(name, build) for name, build in BUILDS.items()}
