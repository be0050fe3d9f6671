"""Random arrays: element i has the number of counter offset + i under a key, as kernels draw it with fusec.random.

There is no state. Equal arguments give equal arrays. An offset continues where an array has ended:
`uniform(1000, key)` is `uniform(400, key)` followed by `uniform(600, key, offset=400)`. Arrays of several axes are
filled in C order. A stream is an independent sequence of the same key. Numbers are drawn on the device of the array,
with the same bits on every device.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import wraps
from inspect import signature
from math import prod, sqrt
from typing import Any, TypeVar, cast

import numpy as np

from fusec import random
from fusec.errors.alternatives import LAZY_RANDOM
from fusec.errors.arguments import NotInWord, NotWhole
from fusec.errors.lazy import DoesNotFit, NegativeSize, NoSuchFunction, NotADType, NotASize, NotByKey, NotHeld
from fusec.fusion.functions.randomness import traced
from fusec.fusion.graphs.graph_elements import positions
from fusec.fusion.trace import tracer
from fusec.fusion.trace.lines import here
from fusec.language.random_checks import SIGNED, WORD, in_range, whole
from fusec.xp.array import Array
from fusec.xp.calls import DType, Operand, array_of
from fusec.xp.creation import Shape
from fusec.xp.devices import checked
from fusec.xp.documentation import documented
from fusec.xp.forms import CPU, Device, form
from fusec.xp.linalg import cholesky
from fusec.xp.recording import record, with_form, wrapped
from fusec.xp.refusals import UNEXPECTED, refusal
from fusec.xp.searching import argsort
from fusec.xp.signatures import repeated

F = TypeVar("F", bound=Callable[..., Any])

__all__ = ["exponential", "integers", "multivariate_normal", "normal", "permutation", "uniform"]

FLOAT64 = np.dtype(np.float64)
THREE_WORDS = form(np.dtype(np.uint64), (3,))
Number = Any
"""A number, or an array that broadcasts against the draws."""

Word = Any
"""A whole number from 0 to 2^64 - 1: Python's, NumPy's, or a lazy array of integers without axes."""


def _by_key(function: F) -> F:
    """The function, whose error for arguments in NumPy's order says how it is called."""

    @wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except TypeError as problem:
            try:
                signature(function).bind(*args, **options)
            except TypeError as reason:
                if UNEXPECTED.search(str(reason)):
                    raise refusal(TypeError(str(reason)), function) from None
                raise _misread(function, str(reason)) from None
            raise refusal(problem)  # noqa: B904 - it says so

    return cast("F", run)


def _misread(function: Callable[..., Any], reason: str) -> Exception:
    cure = f"write {_call_of(function)}, where the key, a whole number, is the seed"
    return NotByKey(function.__name__, reason, cure).at(here())


SHARED = ("offset", "stream", "dtype", "device")
"""Options of all functions."""


def _call_of(function: Callable[..., Any]) -> str:
    """How a function is called, without the options that all functions have."""
    given = []
    for name, each in signature(function).parameters.items():
        if name not in SHARED:
            default = each.default
            given.append(name if default is each.empty else f"{name}={'...' if default is None else f'{default:g}'}")
    return f"xp.random.{function.__name__}({', '.join(given)})"


@_by_key
@documented
def uniform(
    size: Shape, key: Word, *, low: Number = 0.0, high: Number = 1.0, offset: Word = 0, stream: Word = 0,
    dtype: DType = None, device: Any = None,
) -> Array:  # fmt: skip
    """Floats that are equally likely in [low, high): low + (high - low) * fusec.random.uniform64(key, counter).

    low, high: numbers or arrays that broadcast against size; where their sum rounds, high itself may come.
    dtype: float64, the usual one, or float32, whose numbers are those of uniform32.

    >>> xp.round(xp.random.uniform(3, 7), 4)
    Array([0.7502, 0.7953, 0.0085])
    """
    shape, dtype, where = _shape(size), _dtype(dtype, "fd"), _device(device, key, offset, stream, low, high)
    found = _drawn(f"uniform{dtype.itemsize * 8}", shape, _words(key, offset, stream, prod(shape), where))
    if _is(low, 0) and _is(high, 1):
        return found
    low, high = (_fitting(name, each, shape, dtype, where) for name, each in (("low", low), ("high", high)))
    result: Array = low + (high - low) * found
    return result


@_by_key
@documented
def normal(
    size: Shape, key: Word, *, loc: Number = 0.0, scale: Number = 1.0, offset: Word = 0, stream: Word = 0,
    dtype: DType = None, device: Any = None,
) -> Array:  # fmt: skip
    """Numbers of a normal distribution: loc + scale * fusec.random.normal64(key, counter).

    loc, scale: the mean and the standard deviation, numbers or arrays that broadcast against size. A negative scale
    is refused, unless it is in a lazy array.
    dtype: float64, the usual one; float32, whose numbers are those of normal32; or complex64 and complex128, where
    the real and the imaginary part are independent and have half of the variance each.

    >>> xp.round(xp.random.normal(3, 7), 4)
    Array([1.43  , 1.719 , 0.0757])
    """
    shape, dtype, where = _shape(size), _dtype(dtype, "fdFD"), _device(device, key, offset, stream, loc, scale)
    words = _words(key, offset, stream, prod(shape), where)
    found: Array
    if dtype.kind == "c":
        name = "normal32x4" if dtype == np.complex64 else "normal64x2"
        found = _drawn_complex(name, shape, words)
    else:
        found = _drawn(f"normal{dtype.itemsize * 8}", shape, words)
    if not _is(scale, 1):
        real_part = np.dtype(dtype.char.lower())
        found = _scale(scale, shape, real_part, where) * found
    return found if _is(loc, 0) else _fitting("loc", loc, shape, dtype, where) + found


@_by_key
@documented
def exponential(
    size: Shape, key: Word, *, scale: Number = 1.0, offset: Word = 0, stream: Word = 0, dtype: DType = None,
    device: Any = None,
) -> Array:  # fmt: skip
    """Numbers of an exponential distribution: scale * fusec.random.exponential64(key, counter).

    scale: the mean, a number or an array that broadcasts against size. A negative scale is refused, unless it is in a
    lazy array.
    dtype: float64, the usual one, or float32, whose numbers are those of exponential32.

    >>> xp.round(xp.random.exponential(3, 7), 4)
    Array([1.3869, 1.5861, 0.0085])
    """
    shape, dtype, where = _shape(size), _dtype(dtype, "fd"), _device(device, key, offset, stream, scale)
    found = _drawn(f"exponential{dtype.itemsize * 8}", shape, _words(key, offset, stream, prod(shape), where))
    return found if _is(scale, 1) else _scale(scale, shape, dtype, where) * found


@_by_key
@documented
def integers(
    size: Shape, key: Word, low: Any = 0, high: Any = None, *, offset: Word = 0, stream: Word = 0,
    dtype: DType = None, device: Any = None,
) -> Array:  # fmt: skip
    """Integers from low to high - 1: fusec.random.integers(key, counter, low, high).

    low, high: int64 numbers, at most 2^32 apart, or arrays that broadcast against size. low is 0 if it is left out.
    Nothing is rejected: 64 random bits are multiplied by the width, so that the probabilities of two numbers differ by
    at most one part in 2^32. dtype: int64, the usual one, or another integer dtype that holds the range.
    Raises FusecTypeError without high, as a call with NumPy's order of arguments is, FusecValueError for ranges that
    are empty or wider, and FusecOverflowError for ranges that do not fit.

    >>> xp.random.integers(4, 7, 0, 6)
    Array([4, 4, 0, 1])
    """
    shape, dtype = _shape(size), _dtype(dtype, "bhilqBHILQ", np.int64)
    if high is None:
        raise _misread(integers, "missing a required argument: 'high'")
    where = _device(device, key, offset, stream, low, high)
    bounds = [_bound(name, each, shape, where) for name, each in (("low", low), ("high", high))]
    if type(low) is not Array and type(high) is not Array:
        _holds(low, high, dtype)
    found = _drawn("integers", shape, _words(key, offset, stream, prod(shape), where), *bounds)
    return found.astype(dtype, copy=False)


@_by_key
@documented
def permutation(x: Any, key: Word, *, offset: Word = 0, stream: Word = 0, device: Any = None) -> Array:
    """The numbers from 0 to x - 1 in random order, or the rows of an array.

    x: an integer, or an array that has axes. Element i takes the place that 64 random bits of counter offset + i have
    in order; equal bits keep their order, which has a probability below x^2 / 2^65.

    >>> xp.random.permutation(5, 7)
    Array([2, 3, 0, 1, 4])
    """
    where = _device(device, x, key, offset, stream)
    rows = None if isinstance(x, (int, np.integer)) else _placed(array_of(x), x, where)
    if rows is not None and not rows.ndim:
        raise NotASize(repr(x), "a whole number, or an array with axes").at()
    shape = _shape(x if rows is None else rows.shape[0])
    order = argsort(_drawn("_word64", shape, _words(key, offset, stream, shape[0], where)))
    return order if rows is None else rows[order]


@_by_key
@documented
def multivariate_normal(
    size: Shape, key: Word, mean: Operand, cov: Operand = None, *, factor: Operand = None, offset: Word = 0,
    stream: Word = 0, dtype: DType = None, device: Any = None,
) -> Array:  # fmt: skip
    """Vectors of a normal distribution: mean + L @ z, where z is standard normal; the shape is that of size and mean.

    mean: a vector of d elements. cov: the covariance, of the shape (d, d); or instead factor: an L, of that shape,
    with L @ L.mT = cov, such as xp.linalg.cholesky(cov), which many draws then share.
    offset: of the first vector: each takes d counters. The z are bit for bit those of any other division by offset;
    the product is BLAS's, which rounds large products differently from small ones.
    Raises LinAlgError, when it is evaluated, for a cov that is not positive definite.

    >>> xp.random.multivariate_normal(2, 7, [0.0, 10.0], [[1.0, 0.5], [0.5, 1.0]]).shape
    (2, 2)
    """
    shape, dtype, where = _shape(size), _dtype(dtype, "fd"), _device(device, key, offset, stream, mean, cov, factor)
    middle = _placed(array_of(mean), mean, where)
    if middle.ndim != 1:
        raise DoesNotFit("mean", f"of shape {middle.shape}", "a vector").at()
    if (cov is None) == (factor is None):
        raise DoesNotFit(
            "covariance", "given twice" if factor is not None else "missing", "one of cov= and factor="
        ).at()
    count = middle.shape[0]
    given = factor if cov is None else cov
    matrix = _placed(array_of(given), given, where)
    if matrix.shape != (count, count):
        raise DoesNotFit(
            "factor" if cov is None else "cov", f"of shape {matrix.shape}", f"the shape {(count, count)}"
        ).at()
    if type(offset) is not Array:
        whole(offset, "offset", WORD)
        offset = int(offset) * count
    else:
        offset = offset * count
    shape = *shape, count
    words = _words(key, offset, stream, prod(shape), where)
    middle, lower = _as(middle, dtype), _as(matrix, dtype)
    lower = cholesky(lower) if factor is None else lower
    return _drawn_vectors(f"normal{dtype.itemsize * 8}", shape, words, middle, lower)


# --- arguments -------------------------------------------------------------------------------------------------------


NAMED = "a whole number or a tuple of them; loc=, scale=, low= and high= are given by name"


def _shape(size: Any) -> tuple[int, ...]:
    if type(size) is int and size >= 0:
        return (size,)
    try:
        found = tuple(map(operator.index, size if isinstance(size, (tuple, list)) else (size,)))
    except TypeError:
        raise NotASize(repr(size), NAMED).at() from None
    if any(each < 0 for each in found):
        raise NegativeSize(repr(size)).at(here())
    return found


def _dtype(given: DType, chars: str, usual: Any = np.float64) -> np.dtype[Any]:
    if given is None and usual is np.float64:
        return FLOAT64
    try:
        found: np.dtype[Any] = np.dtype(usual if given is None else given)
    except TypeError:
        found = np.dtype(object)
    if found.char not in chars:
        known = ", ".join(dict.fromkeys(str(np.dtype(each)) for each in chars))
        raise NotADType(str(given), "a dtype of these random numbers", f"write one of {known}").at()
    return found


def _device(device: Any, *given: Any) -> Device:
    """The named device, or else that of the first lazy array, or else host memory. Raises NoSuchDevice."""
    if device is not None:
        return checked(device)
    for each in given:
        if type(each) is Array:
            return each._form.device
    return CPU


def _placed(array: Array, given: Any, where: Device) -> Array:
    """An argument as an array: numbers and lists are copied to a device, arrays are used where they are."""
    return array if isinstance(given, (Array, np.ndarray)) else array.to_device(where)


def _words(key: Word, offset: Word, stream: Word, count: int, where: Device) -> Array | tuple[Array, ...]:
    """The key, the offset and the stream in one array; in three 0-d arrays if one of them is a lazy array."""
    if type(key) is type(offset) is type(stream) is int and where is CPU:
        first, last = WORD
        if first <= key <= last and first <= stream <= last and first <= offset <= last + 1 - max(count, 1):
            return with_form(np.array((key, offset, stream), np.uint64), THREE_WORDS)  # type: ignore[no-any-return]
    given = {"key": key, "offset": offset, "stream": stream}
    found = [_word(name, each) for name, each in given.items()]
    if type(offset) is not Array and int(offset) + count > WORD[1] + 1:
        raise NotInWord("offset", str(offset), 0, WORD[1] + 1 - count).at()
    if not any(isinstance(each, Array) for each in found):
        return wrapped(np.array(found)).to_device(where)  # type: ignore[no-any-return]
    return tuple(each if isinstance(each, Array) else wrapped(each).to_device(where) for each in found)


def _word(name: str, given: Word) -> Any:
    if type(given) is not Array:
        whole(given, name, WORD)
        given = np.asarray(given, np.uint64)
    elif given.dtype.kind not in "iu":
        raise NotWhole(name, f"an array of {given.dtype}").at()
    if given.ndim:
        raise DoesNotFit(name, f"of shape {given.shape}", "a single number").at()
    return given


def _bound(name: str, given: Any, shape: tuple[int, ...], where: Device) -> Array:
    if type(given) is not Array:
        whole(given, name, SIGNED)
        given = wrapped(np.asarray(given, np.int64)).to_device(where)
    elif given.dtype.kind not in "iu":
        raise NotWhole(name, f"an array of {given.dtype}").at()
    return _fitting(name, given, shape, np.dtype("int64"), where)


def _holds(low: Any, high: Any, dtype: np.dtype[Any]) -> None:
    """Raise BadRange and NotHeld for ranges that are empty, too wide, or that a dtype does not hold."""
    in_range(low, high)
    limits = np.iinfo(dtype)
    if np.size(low) and np.size(high):
        for name, given, end in (("low", int(np.min(low)), 0), ("high", int(np.max(high)), 1)):
            least, most = int(limits.min) + end, int(limits.max) + end
            if not least <= given <= most:
                what, limit = ("small", f"of {least} or more") if given < least else ("large", f"up to {most}")
                raise NotHeld(name, given, what, str(dtype), limit).at(here())


def _fitting(name: str, given: Any, shape: tuple[int, ...], dtype: np.dtype[Any], where: Device) -> Array:
    """A parameter as an array, which broadcasts against the draws."""
    found = array_of(given)
    try:
        fits = np.broadcast_shapes(found.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise DoesNotFit(name, f"of shape {found.shape}", f"a shape that broadcasts to {shape}").at()
    if not np.can_cast(found.dtype, dtype, "same_kind"):
        raise NotADType(str(found.dtype), f"a dtype of {name}", f"convert it to {dtype}").at()
    return _as(_placed(found, given, where), dtype)


def _as(given: Array, dtype: np.dtype[Any]) -> Array:
    """An array with elements of a dtype: itself if it has them."""
    return given if given.dtype == dtype else given.astype(dtype)


def _scale(given: Any, shape: tuple[int, ...], dtype: np.dtype[Any], where: Device) -> Array:
    """A scale as an array. Raises DoesNotFit for negative numbers, unless they are in a lazy array."""
    found = _fitting("scale", given, shape, dtype, where)
    if type(given) is not Array and np.any(np.less(given, 0)):
        raise DoesNotFit("scale", f"negative: {given!r}", "a scale of 0 or more").at(here())
    return found


def _is(given: Any, number: int) -> bool:
    return type(given) in (int, float) and given == number


# --- draws -----------------------------------------------------------------------------------------------------------


@repeated
def _drawn(name: str, shape: tuple[int, ...], words: Any, *bounds: Array) -> Array:
    return record(_draw, name, words, shape, *bounds)  # type: ignore[no-any-return]


@repeated
def _drawn_complex(name: str, shape: tuple[int, ...], words: Any) -> Array:
    return record(_complex, name, words, shape)  # type: ignore[no-any-return]


@repeated
def _drawn_vectors(name: str, shape: tuple[int, ...], words: Any, mean: Array, factor: Array) -> Array:
    return record(_vectors, name, words, shape, mean, factor)  # type: ignore[no-any-return]


def _draw(name: str, words: Any, shape: tuple[int, ...], *bounds: Any) -> Any:
    """The numbers of a function of fusec.random for each counter of an array."""
    function = getattr(random, name)
    key, offset, stream = (words[at] for at in range(3))
    if not isinstance(key, tracer.Tracer):
        return function(key, np.arange(prod(shape), dtype=np.uint64).reshape(shape) + offset, *bounds, stream)
    counter: Any = tracer.made(key._trace, positions(0, shape)) if shape else 0
    for axis in range(1, len(shape)):
        counter = counter * shape[axis] + tracer.made(key._trace, positions(axis, shape))
    return traced(function)(key, np.add(counter, offset.astype(np.int64)).astype(np.uint64), *bounds, stream)


def _complex(name: str, words: Any, shape: tuple[int, ...]) -> Any:
    """The first two numbers of a function of fusec.random, as parts with half of the variance."""
    real, imag = _draw(name, words, shape)[:2]
    half = real.dtype.type(sqrt(0.5))
    return real * half + np.complex64(1j) * (imag * half)


def _vectors(name: str, words: Any, shape: tuple[int, ...], mean: Any, factor: Any) -> Any:
    """The mean plus vectors of numbers of a function of fusec.random, multiplied by a factor."""
    return mean + np.matmul(_draw(name, words, shape), factor.T)


def __getattr__(name: str) -> Any:
    raise NoSuchFunction(name, __name__, LAZY_RANDOM.get(name, f"it has {', '.join(__all__)}")).at()


def __dir__() -> list[str]:
    """The public names, and Python's own."""
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
