"""dtypes that users write: conversions, ``np.dtype("f")``, and ``dtype=`` of NumPy's ufuncs, in which they compute."""

from __future__ import annotations

import numpy as np

from fusec.base import dtypes
from fusec.base.diagnostics import did_you_mean
from fusec.base.dtypes import BOOL, DType
from fusec.base.source import Span
from fusec.errors.language import CannotConvert, UnknownType
from fusec.frontends.lowering import CallSite
from fusec.frontends.python import syntax as s
from fusec.frontends.python.build import unquoted
from fusec.frontends.python.functions import Known, python_int
from fusec.frontends.python.types import PY_BOOL, PY_FLOAT, PY_INT, Kind, PythonType, carrier, is_complex, rank, storage
from fusec.frontends.python.values import Scalar, adapt, converted, literal, rounded
from fusec.ir.expr import apply

ANSWERS = frozenset(  # results of a kind of their own, whatever operands are converted to
    "abs absolute equal not_equal less less_equal greater greater_equal isfinite isinf isnan signbit"
    " logical_and logical_not logical_or logical_xor".split()
)


def dtype_named(node: s.String) -> DType:
    """The dtype that a text names, as NumPy's names and codes do. Raises UnknownType."""
    text = unquoted(node.text)
    try:
        found = dtypes.BY_NAME.get(text) or dtypes.from_numpy(text)
    except TypeError:
        found = None
    if found is None:
        cure = did_you_mean(text, dtypes.BY_NAME) or "write a dtype, e.g. np.float32 or 'float32'"
        raise UnknownType(text, cure).at(node.span)
    return found


def has_dtype_argument(name: str) -> bool:
    """True for the functions that are ufuncs in NumPy."""
    return isinstance(getattr(np, name, None), np.ufunc)


def in_dtype(known: Known, site: CallSite, args: list[Scalar], dtype: DType) -> Scalar:
    """A ufunc computed in a dtype, or with an answer of that dtype: ``np.add(x, y, dtype=np.float32)``.

    Operands convert as NumPy's casting="same_kind" has it. Raises BadArgument for others, and where the function has no
    result of that dtype.
    """
    if site.name in ANSWERS:
        found = known.call(site, args)
        if storage(found.type) == dtype:
            return Scalar(dtype, found.read())
    for arg in args:
        if not _casts(arg.type, dtype):
            cure = f"convert it yourself: np.{dtype}({'x.real' if is_complex(arg.type) else 'x'})"
            raise site.refuse(f"{arg.type} with dtype={dtype}", cure)
    found = known.call(site, [_converted(arg, dtype, site.span) for arg in args])
    if found.type != dtype:
        raise site.refuse(f"dtype={dtype}", f"it gives {found.type}: convert the result, np.{dtype}(...)")
    return found


def cast(value: Scalar, kind: Kind, span: Span) -> Scalar:
    """A conversion that the user has written. Raises CannotConvert for complex to real."""
    if is_complex(value.type) and not is_complex(kind) and kind not in (BOOL, PY_BOOL):
        raise CannotConvert(str(value.type), str(kind), "take a part: x.real, x.imag or abs(x)").at(span)
    if kind == PY_INT:
        return python_int(value)
    if value.literal is not None and not isinstance(value.literal, complex):
        if kind == PY_FLOAT:
            return adapt(value, kind, span)
        if kind in (BOOL, PY_BOOL):
            return literal(True) if value.literal else literal(False)
    if isinstance(kind, DType) and kind in dtypes.STORAGE_FLOATS:
        wide = adapt(value, kind, span)
        return Scalar(kind, apply("convert", rounded(wide), target=carrier(kind)))
    if value.literal is not None:
        return adapt(value, kind, span)
    return Scalar(kind, converted(value.read(), carrier(kind)))


def _casts(given: Kind, dtype: DType) -> bool:
    loses_sign = isinstance(given, DType) and given.kind == "signed" and dtype.kind == "unsigned"
    return rank(given) <= rank(dtype) and not loses_sign


def _converted(value: Scalar, dtype: DType, span: Span) -> Scalar:
    return adapt(value, dtype, span) if isinstance(value.type, PythonType) else cast(value, dtype, span)
