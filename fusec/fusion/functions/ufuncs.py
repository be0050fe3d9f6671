"""Calls of ufuncs with traced operands: outputs, masks, methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.errors.fusing import NeedsValues, NotFusable
from fusec.fusion.functions.masked import Picked
from fusec.fusion.trace import elementwise, tracer
from fusec.fusion.trace.needed import CONSTANT_WRITTEN
from fusec.fusion.trace.tables import METHODS
from fusec.fusion.trace.trace import Trace, check_fits, here
from fusec.fusion.trace.trace_values import ArrayValue, laid_out

REDUCES = {
    "add": "sum", "multiply": "prod", "minimum": "min", "maximum": "max", "logical_and": "all", "logical_or": "any",
    **{name: f"_{name}" for name in ("bitwise_or", "bitwise_and", "bitwise_xor", "logical_xor", "fmax", "fmin")},
}  # fmt: skip


def call(trace: Trace, ufunc: np.ufunc, method: str, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """The result of a ufunc. Raises NotFusable and NumPy's errors."""
    given = {"axis": options["axis"]} if "axis" in options else {} if len(args) > 1 else {"axis": 0}
    options = {name: value for name, value in options.items() if value is not None}
    if any(isinstance(each, Picked) for each in args):
        return NotImplemented
    if method == "reduce" and ufunc.__name__ in REDUCES:
        if isinstance(options.get("out"), tuple):
            (options["out"],) = options["out"]
        return _reduced(trace, ufunc, args, options | given)
    if method == "__call__" and ufunc.signature is not None:
        return METHODS["_product"](ufunc, args, options)
    if method == "outer":
        first, second = (tracer.made(trace, tracer._operand(trace, each)) for each in args)
        return call(trace, ufunc, "__call__", (first[(..., *(None,) * second.ndim)], second), options)
    if method == "at":
        return METHODS["_at"](ufunc, *args)
    if method == "reduceat":
        return METHODS["_reduced_at"](ufunc, *args, **options)
    if method == "accumulate":
        return METHODS["_accumulated"](ufunc, *args, **options | given)
    if method != "__call__":
        raise NotFusable(f"np.{ufunc.__name__}.{method}", "call it outside of the fused function").at(here())
    out = options.pop("out", ())
    where, dtype, casting = options.pop("where", True), options.pop("dtype", None), options.pop("casting", "same_kind")
    order, _ = options.pop("order", "K"), options.pop("subok", None)
    if options:
        raise NotFusable(f"np.{ufunc.__name__} with {', '.join(options)}=", "leave it out").at(here())
    outputs = out if isinstance(out, tuple) else (out,)
    if len(args) > ufunc.nin:
        outputs, args = tuple(args[ufunc.nin :]), args[: ufunc.nin]
    values = [tracer._operand(trace, each) for each in args]
    found = elementwise.apply_ufunc(trace, ufunc, values, dtype, casting)
    if where is not True and not any(each is not None for each in outputs):
        raise NotFusable("where= without out=", "elements left out would have no value: use np.where").at(here())
    results = []
    for at, value in enumerate(found):
        target = outputs[at] if at < len(outputs) else None
        if target is None:
            if order != "K":
                value = ArrayValue(value.scalar, laid_out(value.phantom, value.dtype.numpy, order))
            results.append(tracer.made(trace, value, True))
            continue
        results.append(_into(ufunc, target, value, where, casting))
    return results[0] if ufunc.nout == 1 else tuple(results)


def _reduced(trace: Trace, ufunc: np.ufunc, args: Sequence[Any], given: dict[str, Any]) -> Any:
    """The method reduce of a ufunc. Raises NumPy's error for a dtype for which it has no loop."""
    (x, *rest), names = args, ("axis", "dtype", "out", "keepdims", "initial", "where")
    options = {**dict(zip(names, rest, strict=False)), **given}
    dtype = options.pop("dtype", None)
    if dtype is not None:
        wanted = np.dtype(dtype)
        ufunc.resolve_dtypes((wanted, wanted, None), signature=(None, None, wanted))
        if ufunc in (np.add, np.multiply):
            options["dtype"] = wanted
        elif not ufunc.__name__.startswith("logical"):
            x = METHODS["astype"](tracer.made(trace, tracer._operand(trace, x)), wanted)
    return METHODS[REDUCES[ufunc.__name__]](x, **options)


def _into(ufunc: np.ufunc, target: Any, value: Any, where: Any, casting: str) -> tracer.Tracer:
    """Store a result in an array given for it."""
    if isinstance(target, np.ndarray) and not isinstance(target, tracer.Tracer):
        raise NeedsValues(*CONSTANT_WRITTEN).at(here())
    if not isinstance(target, tracer.Tracer):
        raise TypeError("return arrays must be of ArrayType")
    if not np.can_cast(value.dtype.numpy, target.dtype, casting):  # type: ignore[arg-type]
        raise TypeError(
            f"Cannot cast ufunc '{ufunc.__name__}' output from dtype('{value.dtype}') to dtype('{target.dtype}') "
            f"with casting rule '{casting}'"
        )
    check_fits("the result", value.shape, target._seen.shape)
    target._write(value, where)
    return target


METHODS["__array_ufunc__"] = call
