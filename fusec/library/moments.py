"""Reductions that walk each chunk twice: variance and logsumexp.

Note [Spread]. A chunk computes its mean, then, while its elements are in cache, the sums d and q of deviations from it
and of their squares. Since the mean is rounded, d is not zero; mean + d / n and q - d * d / n are corrected for that
(the corrected two-pass algorithm: Chan, Golub and LeVeque, The American Statistician 37, 1983). Chunks combine by the
pairwise formula of the same paper, so that memory is read once. Means are pairs of numbers, the second one what the
first lacks: differences of means are then as good as the elements allow, also where these lie far from 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fusec.base.dtypes import INT64, real_type
from fusec.ir.expr import const
from fusec.ir.loops import Declare, Local, Stmt
from fusec.ir.reductions import COVERED
from fusec.library.formula import REST, Fields, Formula, Lowered, combining, parts_named, reduction_of, stage_of
from fusec.math.moments import over, square, together
from fusec.math.value import Term, sqrt, unary, where


def _summed(a: Mapping[str, Term], b: Mapping[str, Term]) -> Sequence[Term]:
    return [a[name] + b[name] for name in a]


def _named(name: str, value: Term) -> tuple[Stmt, Term]:
    return Declare(name, value.dtype, value.expr), Term(Local(name, value.dtype))


def variance(formula: Formula, squares: Term, count: Term) -> Term:
    """The sum of squared distances over the number of elements less the correction."""
    free = count - formula.number("correction")
    return squares / where(free <= 0, np.nan if formula.skips_nan else 0.0, free)


def spread(formula: Formula, _: Sequence[int]) -> Lowered:
    """The mean, the variance or its root, as the outputs are named: see Note [Spread]."""
    held, real = formula.held, real_type(formula.held)
    x, nothing = formula.element().to(held), Term(const(0, held))
    counted = formula.condition is not None
    sums: Fields = (("s", held), *((("n", real),) if counted else ()))
    rest: Fields = (("d", held), ("q", real))
    moments: Fields = (("n", real), ("mean", held), ("rest", held), ("square", real))
    functions = (
        combining(f"{formula.name}_sum", sums, _summed),
        combining(f"{formula.name}_rest", rest, _summed),
        combining(formula.name, moments, together),
    )
    first = [formula.chosen(x, nothing)]
    found = parts_named("first", sums)
    if counted:
        first.append(formula.chosen(Term(const(1, real)), Term(const(0, real))))
        count = found["n"]
    else:
        count = Term(Local(COVERED, INT64)).to(real)
    declare_count, count = _named("count", count)
    declare_divisor, divisor = _named("divisor", where(count.eq(0), 1.0, count))
    declare_mean, mean = _named("mean", over(found["s"], divisor))
    far = formula.chosen(x - mean, nothing)
    second = parts_named("second", rest)
    squares = second["q"] - square(second["d"]) / divisor
    total = [count, mean, over(second["d"], divisor), where(squares < 0, 0.0, squares)]
    stages = (
        stage_of(formula, "first", first, functions[0], (declare_count, declare_divisor, declare_mean)),
        stage_of(formula, "second", [far, square(far)], functions[1]),
    )

    def finish(found: Mapping[str, Term], may_be_empty: bool = True) -> Sequence[Term]:
        count, mean = found["n"] if counted else REST.to(real), found["mean"] + found["rest"]
        if may_be_empty:
            mean = over(mean, where(count.eq(0), 0.0, Term(const(1, real))))  # nan, all of it, of no elements
        var = variance(formula, found["square"], count)
        values = {"mean": mean, "var": var, "std": sqrt(var)}
        return [values[name] for name, _ in formula.outputs]

    neutral = {name: Term(const(0, dtype)) for name, dtype in moments}
    stores = formula.stores(finish(parts_named("total", moments), may_be_empty=counted))
    reduction = reduction_of(formula, stages, total, functions, stores)
    return reduction, formula.empty(neutral, finish, has_value=True)


# --- logsumexp -----------------------------------------------------------------------------------------------------


def _shift(greatest: Term) -> Term:
    """What is taken from exponents: the greatest, or nothing if that is infinite or nan."""
    return where(unary("isfinite", greatest), greatest, 0.0)


def _together(a: Mapping[str, Term], b: Mapping[str, Term]) -> Sequence[Term]:
    """Sums of powers relative to the greatest exponent of both."""
    greatest = _maximum(a["m"], b["m"])

    def scaled(side: Mapping[str, Term]) -> Term:
        factor = where(side["m"].eq(greatest), 1.0, unary("exp", side["m"] - greatest))
        return side["s"] * factor

    return [greatest, scaled(a) + scaled(b)]


def _maximum(a: Term, b: Term) -> Term:
    return where((a > b) | a.ne(a), a, b)


def logsumexp(formula: Formula, _: Sequence[int]) -> Lowered:
    """The logarithm of a sum of exponentials; no exponential overflows."""
    held = formula.held
    lowest = Term(const(-np.inf, held))
    x = formula.chosen(formula.element().to(held), lowest)
    fields: Fields = (("m", held), ("s", held))
    functions = (
        combining(f"{formula.name}_greatest", (("m", held),), lambda a, b: [_maximum(a["m"], b["m"])]),
        combining(f"{formula.name}_sum", (("s", held),), _summed),
        combining(formula.name, fields, _together),
    )
    declare, shift = _named("shift", _shift(Term(Local("greatest", held))))
    stages = (
        stage_of(formula, "greatest", [x], functions[0], (declare,)),
        stage_of(formula, "powers", [unary("exp", x - shift)], functions[1]),
    )
    total = [Term(Local("greatest", held)), Term(Local("powers", held))]

    def finish(found: Mapping[str, Term]) -> Sequence[Term]:
        return [unary("log", found["s"]) + _shift(found["m"])]

    neutral = {"m": lowest, "s": Term(const(0, held))}
    stores = formula.stores(finish(parts_named("total", fields)))
    reduction = reduction_of(formula, stages, total, functions, stores)
    return reduction, formula.empty(neutral, finish, has_value=True)
