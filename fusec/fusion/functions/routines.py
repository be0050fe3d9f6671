"""NumPy's functions and methods that fuse supports, apart from ufuncs: views, conversions, creation, choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod as product
from typing import Any

import numpy as np
from numpy._core.umath import clip as CLIP  # type: ignore[attr-defined]  # noqa: N812 - the ufunc that np.clip calls

from fusec.arguments.operands import strided
from fusec.errors.fusing import NotFusable
from fusec.frontends.lowering import CallSite
from fusec.frontends.python.functions import FUNCTIONS as SCALAR_FUNCTIONS
from fusec.frontends.python.types import PY_INT, storage
from fusec.fusion.functions.joining import MOST, is_across, joined_along, pieces, stored_parts
from fusec.fusion.trace import elementwise, tracer
from fusec.fusion.trace.array_forms import ArrayForm, shape_of_size, strides_of_shape
from fusec.fusion.trace.conditions import require
from fusec.fusion.trace.numbers import plain
from fusec.fusion.trace.tables import FUNCTIONS, METHODS
from fusec.fusion.trace.trace import Trace, check_fits, constant, here, literal
from fusec.fusion.trace.trace_values import Array, ArrayValue, ViewOf, joint_order, laid_out, phantom

NARROW = 16  # rows of so few elements are slow to choose from, in arrays of more than a number of elements:
LARGE, LARGE_ON_DEVICES = 1 << 10, 1 << 14


def trace_of(*given: Any) -> Trace:
    """The trace of the first array among arguments."""
    for each in given:
        if isinstance(each, tracer.Tracer):
            return each._trace
        if isinstance(each, (list, tuple)):
            for item in each:
                if isinstance(item, tracer.Tracer):
                    return item._trace
    raise AssertionError("one of the arguments is traced")


def traced(x: Any, trace: Trace) -> Any:
    """An argument as a traced array."""
    return x if isinstance(x, tracer.Tracer) else tracer.made(trace, tracer._operand(trace, x))


# --- views ---------------------------------------------------------------------------------------------------------


def _view(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives views of its first argument."""

    def view(x: Any, *args: Any, **options: Any) -> Any:
        x = traced(x, trace_of(x, *args))
        x = tracer.made(x._trace, x._read()) if x._is_scalar and x._read().is_weak else x  # an array for NumPy
        options = {name: _fixed(value) for name, value in options.items() if value is not None}
        if function is np.broadcast_to:
            shape, derived = x._trace.extents.shape_given(args[0] if args else options.pop("shape"))
            args = (shape if derived is None else derived, *args[1:])
        found = x._view(ViewOf(function, tuple(map(_fixed, args)), tuple(options.items())))
        return _as_array(found) if function in (np.broadcast_to, np.expand_dims) else found

    return view


def _fixed(given: Any) -> Any:
    """Axes and shapes as tuples, and numbers of extents as those of Python."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    return tuple(map(_fixed, given)) if isinstance(given, list | tuple) else plain(given)


def _as_array(x: Any) -> Any:
    """A view that is an array even where it is one of a number."""
    x._is_scalar = False
    return x


def reshaped(x: Any, shape: Any, order: str = "C", copies: bool = True) -> Any:
    """A view with another shape, or a copy where strides cannot express it. Raises NumPy's errors."""
    x._trace.has_looked |= order == "A"
    if order == "F" or (order == "A" and x._seen.flags.fnc):
        turned = (shape,) if np.ndim(shape) == 0 else tuple(shape)
        return reshaped(x.T, turned[::-1], "C", copies).T
    if order not in ("C", "A"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got '{order}')")
    seen = x._seen
    example = np.broadcast_to(np.empty(()), seen.shape) if seen.size else np.empty(seen.shape)
    given, derived = x._trace.extents.shape_given(shape)
    wanted = example.reshape(given).shape
    if -1 in given:
        wanted = tuple(-1 if each == -1 else extent for each, extent in zip(given, wanted, strict=True))
    if copies:
        is_view = _is_view(seen, wanted)
        _require_view(x, wanted, derived, is_view)
        x = x if is_view else copied(x, "C")
    return x._view(ViewOf(np.reshape, (wanted if derived is None else derived,), (("copy", False),)))


def _require_view(x: Any, shape: tuple[int, ...], derived: Any, is_view: bool) -> None:
    """State that strides express a new shape, or that they do not, as now."""
    if derived is None:
        require([x], lambda array: _is_view(array, shape) == is_view)
        return
    extents = x._trace.extents
    extents.attempt(
        lambda: x._trace.require([extents.seen(x), derived], lambda array, shape: _is_view(array, shape) == is_view)
    )


def _is_view(array: Any, shape: tuple[int, ...]) -> bool:
    """Whether strides express another shape. Raises NumPy's error for a shape of another size."""
    if type(array) is not ArrayForm:
        np.broadcast_to(np.empty(()), array.shape).reshape(shape)
    return strides_of_shape(array.shape, array.strides, shape_of_size(array.size, shape), array.itemsize) is not None


def _reshape_method(x: Any, *shape: Any, order: str = "C", copy: Any = None) -> Any:
    del copy
    return reshaped(x, shape[0] if len(shape) == 1 else shape, order)


def _reshape(x: Any, /, shape: Any = None, order: str = "C", *, newshape: Any = None, copy: Any = None) -> Any:
    found = reshaped(x, newshape if shape is None else shape, order)
    return copied(found) if copy else found


def _ravel(x: Any, order: str = "C") -> Any:
    """A view of an array that is dense in the order; a copy of any other, even where strides would give a view."""
    x = _in_order(traced(x, x._trace), order)
    is_dense = x._seen.flags.c_contiguous
    require([x], lambda array: array.flags.c_contiguous == is_dense)
    return reshaped(x if is_dense else copied(x, "C"), -1)


def _in_order(x: Any, order: str) -> Any:
    """A view of an array whose C order is some order of the array. Raises NumPy's error."""
    if order not in ("C", "F", "A", "K"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got '{order}')")
    x._trace.has_looked |= order in ("A", "K")
    if order == "F" or (order == "A" and x._seen.flags.fnc):
        return x.T
    if order != "K":
        return x
    seen = x._seen
    return np.transpose(x, joint_order(((seen.shape, seen.strides),), seen.shape))


def _flatten(x: Any, order: str = "C") -> Any:
    return copied(reshaped(_in_order(x, order), -1))


def _transpose_method(x: Any, *axes: Any) -> Any:
    given = axes[0] if len(axes) == 1 else axes or None
    return x._view(ViewOf(np.transpose, (_fixed(given),)))


def _at_least(function: Callable[..., Any]) -> Callable[..., Any]:
    def view(*xs: Any) -> Any:
        found = [traced(x, trace_of(*xs))._view(ViewOf(function)) for x in xs]
        return found[0] if len(found) == 1 else tuple(found)

    return view


def _broadcast_arrays(*xs: Any, subok: bool = False) -> Any:
    del subok
    trace = trace_of(*xs)
    arrays = [traced(x, trace) for x in xs]
    shape, extents = np.broadcast_shapes(*(each._seen.shape for each in arrays)), trace.extents
    derived = extents.attempt(lambda: extents.joined([extents.of(each) for each in arrays]))
    step = ViewOf(_writable, (shape if derived is None else derived,))
    return tuple(_as_array(each._view(step)) for each in arrays)


def _writable(array: Any, shape: tuple[int, ...]) -> Any:
    """An array in another shape, which may be written where no element is repeated."""
    wide: Any = np.broadcast_to(array, shape)
    if type(array) is ArrayForm:
        return array.placed(wide.start, wide.shape, wide.strides)
    return strided(array, shape, wide.strides)


# --- copies and conversions ------------------------------------------------------------------------------------------


def copied(x: Any, order: str | None = "K", like: Any = None) -> Any:
    """New memory with the same content, laid out as `like`, or as it is itself."""
    seen = laid_out((x if like is None else like)._seen, x.dtype, order)
    return tracer.made(x._trace, ArrayValue(x._read().scalar, seen))


def _copy_function(x: Any, order: str = "K", subok: bool = False) -> Any:
    del subok
    return copied(x, "K" if order == "A" else order)  # as np.array has it


def _astype(
    x: Any, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
) -> Any:
    del subok
    if not np.can_cast(x.dtype, dtype, casting):  # type: ignore[arg-type]
        raise TypeError(
            f"Cannot cast array data from {x.dtype!r} to {np.dtype(dtype)!r} according to the rule '{casting}'"
        )
    flags = x._seen.flags
    is_laid_out = {"K": True, "C": flags.c_contiguous, "F": flags.f_contiguous, "A": flags.forc}
    if np.dtype(dtype) == x.dtype and not copy and is_laid_out.get(order):
        return x
    value = x._trace.adapted(x._read(), elementwise.known_dtype(dtype))
    return tracer.made(x._trace, ArrayValue(value.scalar, laid_out(x._seen, np.dtype(dtype), order)), x._is_scalar)


def _astype_function(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    del device
    return _astype(x, dtype, copy=copy)


def _copyto(target: Any, source: Any, casting: str = "same_kind", where: Any = True) -> None:
    trace = trace_of(target, source, where)
    value = tracer._operand(trace, source)
    if not isinstance(target, tracer.Tracer):
        if isinstance(source, tracer.Tracer) and source._is_scalar:
            source._number("np.copyto into an array from outside")
        raise NotFusable("np.copyto into an array from outside", "pass it as an argument").at(here())
    if not elementwise.can_cast(value, target.dtype, casting):
        what = "array data" if value.shape else "scalar"
        raise TypeError(
            f"Cannot cast {what} from {value.dtype.numpy!r} to {target.dtype!r} according to the rule '{casting}'"
        )
    target._write(value, where)


# --- element by element ----------------------------------------------------------------------------------------------


def scalar_function(name: str, is_scalar: bool = True) -> Callable[..., Any]:
    """A function of numbers that is not a ufunc. is_scalar: numbers make a number, not an array without axes."""

    def function(*xs: Any) -> Any:
        trace = trace_of(*xs)
        values = trace.ready([tracer._operand(trace, x) for x in xs])
        made = SCALAR_FUNCTIONS[name].make(CallSite(name, here()), [each.scalar for each in values])
        scalar = elementwise.finished(made, storage(made.type), name)
        return tracer.made(trace, trace.combined(scalar, values), is_scalar)

    return function


def where(condition: Any, x: Any = None, y: Any = None, /, **options: Any) -> Any:
    """np.where with three arguments."""
    if options:
        raise TypeError(f"where() got an unexpected keyword argument {next(iter(options))!r}")
    if x is None or y is None:
        raise NotFusable("np.where(condition) without values", "its result has a size that depends on values").at(
            here()
        )
    trace = trace_of(condition, x, y)
    return tracer.made(trace, elementwise.choose(trace, *(tracer._operand(trace, each) for each in (condition, x, y))))


def clip(
    x: Any,
    a_min: Any = None,
    a_max: Any = None,
    out: Any = None,
    *,
    min: Any = None,  # noqa: A002 - NumPy's name, as is that of max
    max: Any = None,  # noqa: A002
    where: Any = None,
    casting: Any = None,
    order: Any = None,
    dtype: Any = None,
    subok: Any = None,
    signature: Any = None,
) -> Any:
    """np.clip, with the options of a ufunc."""
    low: Any = min if a_min is None or a_min is np._NoValue else a_min
    high: Any = max if a_max is None or a_max is np._NoValue else a_max
    options = {"out": out, "where": where, "casting": casting, "order": order, "dtype": dtype, "subok": subok}
    options = {name: each for name, each in {**options, "signature": signature}.items() if each is not None}
    if isinstance(x, (int, float, complex)):  # NumPy makes an array of it
        x = tracer.made(x._trace, x._read()) if isinstance(x, tracer.Tracer) else np.asarray(x)
    kind = getattr(x, "dtype", None)
    if kind is not None and kind.kind in "iu":  # Python integers that bound nothing need not fit, as in NumPy
        low, high = _bounds(low, high, np.iinfo(kind))
    if low is None and high is None:
        return np.positive(x, **options)
    if low is None:
        return np.minimum(x, high, **options)
    if high is None:
        return np.maximum(x, low, **options)
    if kind is not None and kind.kind == "c":
        return np.minimum(np.maximum(x, low), high, **options)
    trace = trace_of(x, low, high)
    return METHODS["__array_ufunc__"](trace, CLIP, "__call__", (x, low, high), options)


def _bounds(low: Any, high: Any, ends: Any) -> tuple[Any, Any]:
    """Two bounds of integers that lie between their ends."""
    return _bound(max, low, int(ends.min)), _bound(min, high, int(ends.max))


def _bound(function: Callable[[Any, Any], Any], given: Any, end: int) -> Any:
    """A bound of integers, if it is a Python integer, none beyond the end; None if it is known to bound nothing."""
    if type(given) is int:
        return None if function(given, end) == end else given
    if not isinstance(given, tracer.Tracer) or given._read().kind != PY_INT:
        return given
    return tracer.made(given._trace, given._trace.computed(function, [given._read(), literal(end)]), True)


# --- creation --------------------------------------------------------------------------------------------------------


def full_like(
    x: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Any:
    """np.full_like."""
    del subok, device
    trace = trace_of(x, fill_value)
    x = traced(x, trace)
    row = elementwise.known_dtype(x.dtype if dtype is None else dtype)
    given, derived = (None, None) if shape is None else trace.extents.shape_given(shape)
    seen = laid_out(x._seen, row.numpy, order, given)
    value = trace.adapted(tracer._operand(trace, fill_value), row)
    check_fits("the value", value.shape, seen.shape)
    found = tracer.made(trace, ArrayValue(value.scalar, seen))
    if given is None:
        return trace.extents.framed(found, lambda extents: extents.of(x))
    return trace.extents.framed(found, lambda extents: derived or extents.fixed(given))


def _filled(number: Any) -> Callable[..., Any]:
    def make(
        x: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None, *, device: Any = None
    ) -> Any:
        return full_like(x, number, dtype, order, subok, shape, device=device)

    return make


# --- joining ---------------------------------------------------------------------------------------------------------


def concatenate(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """np.concatenate."""
    parts = _to_join(arrays, out, casting, "np.concatenate")
    if axis is None:
        parts, axis = [reshaped(each, -1) for each in parts], 0
    return _concatenated(parts, axis, dtype, parts)


def _to_join(arrays: Any, out: Any, casting: str, name: str) -> list[Any]:
    """What a function joins. Raises NotFusable for options that kernels do not have."""
    if out is not None or casting != "same_kind":
        raise NotFusable(f"{name} with out= or casting=", "assign to slices").at(here())
    trace = trace_of(*arrays)
    return [traced(each, trace) for each in arrays]


def _concatenated(parts: Sequence[Any], axis: Any, dtype: Any, given: Sequence[Any]) -> Any:
    """Arrays one after another. given: the arrays of which these are views with a new axis, or these."""
    shape = _joined_shape([each._seen.shape for each in parts], axis)
    row = elementwise.known_dtype(np.result_type(*(each.dtype for each in parts)) if dtype is None else dtype)
    seen = phantom(shape, row.numpy, _common_order([each._seen for each in parts]))
    return joined(parts, axis % len(shape), ArrayValue(constant(0, row).scalar, seen), given)


def _joined_shape(shapes: Sequence[Any], axis: Any) -> tuple[int, ...]:
    """The shape of arrays one after another along an axis. Raises what np.concatenate raises."""
    one = [[1] * len(each) for each in shapes]
    np.concatenate([np.empty(each) for each in one], axis=axis)  # NumPy's error for axes, without much memory
    at = range(len(shapes[0]))[axis]
    others = {(*each[:at], *each[at + 1 :]) for each in shapes}
    if len(others) > 1:
        np.concatenate([np.broadcast_to(np.empty(()), each) for each in shapes], axis=axis)
    first = shapes[0]
    return (*first[:at], sum(each[at] for each in shapes), *first[at + 1 :])


def _common_order(arrays: Sequence[Array]) -> list[int]:
    """The axes of arrays from outermost to innermost, as np.concatenate has them: in C order where they differ."""
    axes: list[int] = []
    for axis in range(arrays[0].ndim):
        at = len(axes)
        for place in reversed(range(len(axes))):
            is_further = [
                abs(each.strides[axis]) > abs(each.strides[axes[place]])
                for each in arrays
                if 1 not in (each.shape[axis], each.shape[axes[place]])
            ]
            if not all(is_further):
                break
            at = place if is_further else at
        axes.insert(at, axis)
    return axes


def joined(parts: Sequence[Any], axis: int, new: ArrayValue, given: Sequence[Any] = ()) -> Any:
    """A new array of some, one after another along an axis: read where kernels need them, or stored in their places."""
    trace, filled = parts[0]._trace, [each for each in parts if each._seen.shape[axis]]
    if len(filled) < len(parts):  # the extents of empty arrays are not looked at
        trace.has_looked = True
    most = LARGE if trace.device == "cpu" else LARGE_ON_DEVICES
    if 0 not in new.shape and 1 < len(filled) <= MOST and not _is_slow(new.shape, most):
        parts = [each.astype(new.dtype.numpy, copy=False) for each in filled]
        return pieces(parts, axis, new, lambda shape: not _is_slow(shape, most), given or parts)
    buffer = trace.temporary(new.phantom, new.dtype)
    is_whole = len(filled) == len(parts) and 0 not in new.shape and new.phantom.flags.c_contiguous
    if is_whole and joined_along(trace, parts, axis, lambda shape: _is_slow(shape, most)):
        trace.extents.laid[buffer] = trace.extents.frame(new.shape)
    else:
        trace.has_looked = True
    if not filled:
        memory = trace.storage(new.phantom, None, new)
        return tracer.Tracer(trace, memory, (), memory.base)
    return stored_parts(trace, given if is_across(given, len(new.shape)) else filled, axis, buffer)


def _is_slow(shape: tuple[int, ...], most: int) -> bool:
    """Whether choosing the elements of a joined array is slow."""
    return shape[-1] < NARROW and product(shape) > most


def stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """np.stack."""
    given = _to_join(arrays, out, casting, "np.stack")
    if len({each._seen.shape for each in given}) > 1:
        raise ValueError("all input arrays must have the same shape")
    return _concatenated([np.expand_dims(each, axis) for each in given], axis, dtype, given)


_VIEWS = (
    "transpose permute_dims matrix_transpose swapaxes moveaxis rollaxis expand_dims squeeze broadcast_to flip fliplr"
    " flipud rot90 diagonal"
).split()


def _conjugate(x: Any) -> Any:
    """The method, which unlike the function leaves all as it is that is not complex."""
    if x.dtype.kind != "c":
        return x
    return x._number("the conjugate of a Python number").conjugate() if x._read().is_weak else np.conjugate(x)


def _of_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that makes float64 of integers and bools, however narrow these are."""

    def call(x: Any) -> Any:
        kind = getattr(getattr(x, "dtype", None), "kind", "")
        return function(x.astype(np.float64) if kind and kind in "biu" else x)

    return call


ANGLE = scalar_function("angle")


def _angle(z: Any, deg: bool = False) -> Any:
    """np.angle."""
    return ANGLE(z) * (180 / np.pi) if deg else ANGLE(z)


FUNCTIONS.update(
    {
        **{name: _view(getattr(np, name)) for name in _VIEWS},
        **{name: _at_least(getattr(np, name)) for name in ("atleast_1d", "atleast_2d", "atleast_3d")},
        "sinc": _of_floats(scalar_function("sinc")), "angle": _angle,
        "i0": _of_floats(scalar_function("i0", is_scalar=False)),
        "reshape": _reshape, "ravel": _ravel, "broadcast_arrays": _broadcast_arrays,
        "copy": _copy_function, "astype": _astype_function, "copyto": _copyto,
        "where": where, "clip": clip, "full_like": full_like, "zeros_like": _filled(0),
        "ones_like": _filled(1), "empty_like": _filled(0), "concatenate": concatenate, "concat": concatenate,
        "stack": stack, "shape": lambda x: x.shape, "ndim": lambda x: x.ndim,
        "size": lambda x, axis=None: x.size if axis is None else x.shape[axis],
        "result_type": lambda *xs: elementwise.result_type_of(xs),
        "can_cast": lambda x, to, casting="safe": np.can_cast(x.dtype, to, casting),
        "iscomplexobj": lambda x: x.dtype.kind == "c", "isrealobj": lambda x: x.dtype.kind != "c",
    }
)  # fmt: skip


METHODS.update(
    {
    **{name: FUNCTIONS[name] for name in ("squeeze", "swapaxes", "ravel", "clip", "diagonal")},
    "_reshaped": reshaped,
    "reshape": _reshape_method, "transpose": _transpose_method, "flatten": _flatten, "astype": _astype,
    "copy": lambda x, order="C": x if x._is_scalar else copied(x, order), "conj": _conjugate, "conjugate": _conjugate,
    "fill": lambda x, value: x.__setitem__(..., value),
    }
)  # fmt: skip
