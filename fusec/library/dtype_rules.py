"""The formula of a built-in reduction for dtypes and options; each formula becomes one kernel."""

from __future__ import annotations

from functools import lru_cache
from math import inf
from typing import Any

import numpy as np

from fusec.arguments.operands import cure_for
from fusec.base import dtypes
from fusec.base.dtypes import BOOL, FLOAT64, INT8, INT32, INT64, UINT64, DType, compute_type, real_type
from fusec.dispatch.checked import wanted
from fusec.dispatch.planned import Planned
from fusec.dispatch.reductions import REDUCTION
from fusec.errors.arguments import UnsupportedDtype
from fusec.errors.reductions import NotReducible
from fusec.library.dates import Dated, is_dated
from fusec.library.formula import Formula, signature_of
from fusec.library.rules import RULES

Given = np.dtype[Any]  # of an argument
Asked = np.dtype[Any] | None  # of the result, as dtype= or out= say
Wanted = tuple[Asked, Asked]  # what dtype= says, and the dtype of out=

KINDS = ("bool", "unsigned", "signed", "float", "complex")
WIDE = {"bool": INT64, "signed": INT64, "unsigned": UINT64}  # what integers are summed in
NORMS = {0: "norm_zero", 1: "norm_one", 2: "norm_two", inf: "norm_high", -inf: "norm_low"}
CACHE = 1024  # kernels that are remembered


@lru_cache(CACHE)
def total(name: str, given: Given, wanted: Wanted, *, starts: bool, masked: bool) -> Planned | Dated:
    """A sum or product."""
    if is_dated(given) and wanted[0] is None:
        return Dated(name, given, masked=masked, starts=starts)
    row, rule = row_of(given, name), name.removeprefix("nan")
    result, held = result_types(name, WIDE.get(row.kind, row), wanted)
    numbers = (("initial", held),) if starts else ()
    outputs = (("z", result),)
    return _watched(_kernel(Formula(name, RULES[rule], (row,), held, outputs, numbers, masked, rule != name)))


@lru_cache(CACHE)
def product(name: str, left: Given, right: Given, wanted: Wanted) -> Planned:
    """A sum of products."""
    rows = (row_of(left, name), row_of(right, name))
    default = dtypes.promote(*rows)
    if default is None:
        raise NotReducible(name, f"{rows[0]} with {rows[1]}", "convert one of them").at()
    if name == "mulsum":
        default = WIDE.get(default.kind, default)
    result, held = result_types(name, default, wanted)
    return _watched(_kernel(Formula(name, RULES[name], rows, INT64 if held == BOOL else held, (("z", result),))))


@lru_cache(CACHE)
def truth(name: str, given: Given, out: Asked, *, masked: bool = False) -> Planned | Dated:
    """Whether any or all elements are not zero, or how many."""
    if is_dated(given):
        return Dated(name, given, masked=masked)
    kind = INT64 if name == "count_nonzero" else BOOL
    result = asked(name, kind, (None, out))
    return _kernel(Formula(name, RULES[name], (row_of(given, name),), kind, (("z", result),), (), masked))


@lru_cache(CACHE)
def extreme(name: str, given: Given, out: Asked, *, starts: bool = False, masked: bool = False) -> Planned | Dated:
    """The minimum, the maximum, both, or their difference."""
    if is_dated(given):
        return Dated(name, given, masked=masked, starts=starts)
    row, rule = ordered(given, name), name.removeprefix("nan")
    if rule == "ptp" and row == BOOL:
        raise NotReducible("ptp", "bool", "bools cannot be subtracted; compare any() with all()").at()
    held = compute_type(row)
    numbers = (("initial", held),) if starts else ()
    result = asked(name, row, (None, out))
    outputs = (("low", result), ("high", result)) if rule == "minmax" else (("z", result),)
    return _kernel(Formula(name, RULES[rule], (row,), held, outputs, numbers, masked, rule != name))


@lru_cache(CACHE)
def place(name: str, given: Given, out: Asked = None, *, short: bool) -> Planned | Dated:
    """The position of an extreme element. short: int32 holds all positions."""
    if is_dated(given):
        return Dated(name, given)
    row, rule = ordered(given, name), name.removeprefix("nan")
    held, index = INT8 if row == BOOL else compute_type(row), INT32 if short else INT64
    outputs, skips_nan = (("z", _place_held(out)),), rule != name and row.is_float
    return _kernel(Formula(rule, RULES[rule], (row,), held, outputs, (), False, skips_nan, index))


@lru_cache(CACHE)
def moments(name: str, given: Given, wanted: Wanted, *, masked: bool, about: Asked = None) -> Planned | Dated:
    """Means and variances; about: the dtype of the means, if they are known."""
    if is_dated(given) and wanted[0] is None and about is None:
        return Dated(name, given, masked=masked)
    row, known = row_of(given, name), () if about is None else (row_of(about, name, "mean"),)
    default = row if row.kind in ("float", "complex") else FLOAT64
    for each in known:
        default = dtypes.promote(default, each) or default
    result, held = result_types(name, default, wanted, floating=True)
    outputs = name.removeprefix("nan").split("_")
    stored = tuple((each, result if each == "mean" else real_type(result)) for each in outputs)
    rule, numbers = ("mean", ()) if outputs == ["mean"] else ("spread", (("correction", real_type(held)),))
    rule, skips_nan = "about" if known else rule, name.startswith("nan")
    return _kernel(Formula(name, RULES[rule], (row, *known), held, stored, numbers, masked, skips_nan))


@lru_cache(CACHE)
def norm(order: float, given: Given, wanted: Wanted) -> Planned:
    """A norm; one whose order has no rule of its own takes the order as a number."""
    row = row_of(given, "norm")
    default = row if row.kind in ("float", "complex") else FLOAT64
    result, held = map(real_type, result_types("norm", default, wanted, floating=True))
    numbers = () if order in NORMS else (("p", held),)
    return _kernel(Formula("norm", RULES[NORMS.get(order, "norm_p")], (row,), held, (("z", result),), numbers))


@lru_cache(CACHE)
def logsumexp(name: str, given: Given, out: Asked = None) -> Planned:
    """The logarithm of a sum of exponentials."""
    row = ordered(given, name)
    floating = row if row.is_float else FLOAT64
    result = asked(name, floating, (None, out))
    return _kernel(Formula(name, RULES[name], (row,), compute_type(floating), (("z", result),)))


# --- dtypes --------------------------------------------------------------------------------------------------------


def _kernel(formula: Formula) -> Planned:
    return Planned(formula, signature_of(formula), REDUCTION, uses_index=formula.rule.name in ("argmin", "argmax"))


def _watched(kernel: Planned) -> Planned:
    """The kernel, which reports totals of integers that wrap if FUSEC_CHECK says so."""
    kernel.checks = "wrap" if "wrap" in wanted("trust") else ""
    return kernel


def row_of(given: Given, name: str, param: str = "x") -> DType:
    """The dtype of an argument. Raises UnsupportedDtype."""
    found = dtypes.from_numpy(given)
    if found is None:
        raise UnsupportedDtype(name, param, str(given), cure_for(given)).at()
    return found


def ordered(given: Given, name: str) -> DType:
    """The dtype of elements that are compared. Raises NotReducible for complex numbers."""
    row = row_of(given, name)
    if row.is_complex:
        raise NotReducible(name, row.name, "complex numbers have no order; pass abs(x), or a part").at()
    return row


def asked(name: str, default: DType, wanted: Wanted) -> DType:
    """The dtype of the result: the requested one; that of `out` if it can hold the default; or the default."""
    dtype, out = wanted
    if dtype is not None:
        found = row_of(dtype, name, "dtype")
        if default.is_complex and not found.is_complex:
            raise NotReducible(name, default.name, f"{found} would drop imaginary parts; pass x.real").at()
        return found
    found_out = None if out is None else dtypes.from_numpy(out)
    if found_out is not None and KINDS.index(found_out.kind) >= KINDS.index(default.kind):
        return found_out
    return default


def _place_held(out: Asked) -> DType:
    """The dtype of positions: that of `out` if it is of integers."""
    found = None if out is None else dtypes.from_numpy(out)
    return found if found is not None and found.is_integer else INT64


def result_types(name: str, default: DType, wanted: Wanted, *, floating: bool = False) -> tuple[DType, DType]:
    """The dtype of a result, and that of its accumulator. floating: an integer result raises NotReducible."""
    result = asked(name, default, wanted)
    if floating and result.kind not in ("float", "complex"):
        raise NotReducible(name, result.name, "the result is a floating-point number; pass a float dtype").at()
    return result, compute_type(default if wanted[0] is None else result)
