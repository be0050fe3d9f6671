"""Functions of NumPy that make arrays, as traced functions see them: what they make belongs to the trace."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any

import numpy as np
from numpy._core import _multiarray_umath as UMATH  # type: ignore[attr-defined]  # noqa: N812 - NumPy's source uses it

from fusec.base.dtypes import from_numpy
from fusec.base.records import dataclass
from fusec.fusion.outside.constants import NUMPY
from fusec.fusion.outside.standins import STANDS_IN
from fusec.fusion.trace import elementwise, tracer
from fusec.fusion.trace.numbers import is_extent, plain
from fusec.fusion.trace.tables import CREATION, FUNCTIONS, METHODS
from fusec.fusion.trace.trace import RECORDING, Trace
from fusec.fusion.trace.trace_values import ArrayValue, laid_out
from fusec.fusion.trace.tracer import Tracer

OF_NUMBERS = (
    np.arange, np.linspace, np.logspace, np.geomspace, np.tri, np.hanning, np.hamming, np.blackman, np.bartlett,
    np.kaiser, np.fft.fftfreq, np.fft.rfftfreq,
)  # fmt: skip
PLAIN = (int, float, bool, str, type(None), np.dtype, type)  # other arguments, whose texts differ for different values
LARGE = 1 << 16  # elements from which on kernels compute a matrix from positions: reading it would take longer


class KnownArray(np.ndarray):
    """An array that is known while a function is traced. Elements that a traced array chooses belong to the trace."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return np.ndarray

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Results without axes are numbers."""
        return array[()] if return_scalar else array.view(KnownArray)

    def __repr__(self) -> str:
        return repr(np.asarray(self))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return np.asarray(self).__reduce_ex__(protocol)

    def __getitem__(self, index: Any) -> Any:
        items = index if isinstance(index, tuple) else (index,)
        if not any(isinstance(each, Tracer) for each in items):
            return super().__getitem__(index)
        return tracer.made(_trace(), tracer._operand(_trace(), self))[index]


KnownArray.__name__ = KnownArray.__qualname__ = "ndarray"  # in messages
setattr(KnownArray, STANDS_IN, True)


def _known_array(given: Any) -> Any:
    """An array of NumPy's as one that traced arrays may index."""
    if type(given) is not np.ndarray:
        return given
    made = np.ndarray.__new__(KnownArray, given.shape, given.dtype, order="F" if given.flags.fnc else "C")
    made[...] = given
    return made


def _trace() -> Trace:
    """The trace that is running."""
    recording = RECORDING.get()
    assert recording is not None, "only traced functions see these functions"
    trace: Trace = recording.trace
    return trace


def _full(shape: Any, value: Any, dtype: Any, order: str) -> Any:
    trace = _trace()
    row = elementwise.known_dtype(dtype)
    filled = trace.adapted(tracer._operand(trace, value), row)
    known, derived = trace.extents.shape_given(_known(shape))
    seen = laid_out(np.broadcast_to(np.empty(()), known), row.numpy, order)
    found = tracer.made(trace, ArrayValue(filled.scalar, seen))
    return trace.extents.framed(found, lambda extents: derived or extents.fixed(seen.shape))


def _known(shape: Any) -> Any:
    """A shape of integers that are known. Raises NeedsValues."""
    if isinstance(shape, (tuple, list)):
        return tuple(map(_known, shape))
    return operator.index(shape) if isinstance(shape, Tracer) else shape


def zeros(shape: Any, dtype: Any = float, order: str = "C", *, device: Any = None, like: Any = None) -> Any:
    """np.zeros and np.empty."""
    del device, like
    return _full(shape, 0, dtype, order)


def ones(shape: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None) -> Any:
    """np.ones."""
    del device, like
    return _full(shape, 1, dtype, order)


def full(
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", *, device: Any = None, like: Any = None
) -> Any:
    """np.full."""
    del device, like
    if dtype is None:
        dtype = elementwise.result_type([tracer._operand(_trace(), fill_value)]).numpy
    found = zeros(shape, dtype, order)
    found[...] = fill_value
    return found


def array(
    given: Any, dtype: Any = None, *, copy: bool | None = True, order: Any = "K", subok: bool = False,
    ndmin: int = 0, like: Any = None,
) -> Any:  # fmt: skip
    """np.array of what is traced, and of lists of it; other arrays are NumPy's own."""
    del subok, like
    items = list(_items(given))
    if not any(isinstance(each, Tracer) for each in items):
        is_known = type(given) is KnownArray
        return _known_array(np.array(given, dtype, copy=copy, order=order, ndmin=ndmin, subok=is_known))
    if not isinstance(given, Tracer):
        if len(set(map(np.ndim, items))) > 1:  # lists of numbers beside arrays
            given = _of_arrays(given)
            items = list(_items(given))
        given, copy, order = _joined(given, items), None, "C" if order in ("K", "A", None) else order
    elif given._is_scalar:  # an array of the number
        given, copy = tracer.made(given._trace, given._read()), None
    order = "K" if order == "A" and not copy and dtype in (None, given.dtype) else order  # any order will do
    found = given
    if dtype is not None or order not in ("K", None) or copy:
        found = METHODS["astype"](given, given.dtype if dtype is None else dtype, order or "K", copy=bool(copy))
    return found if found.ndim >= ndmin else found[(None,) * (ndmin - found.ndim)]


def _items(given: Any) -> Iterator[Any]:
    """What lists and tuples hold in the end, in order."""
    if isinstance(given, (list, tuple)):
        for each in given:
            yield from _items(each)
    else:
        yield given


def _of_arrays(given: Any) -> Any:
    """Nested lists with arrays in place of lists that nothing traced is in."""
    if not isinstance(given, (list, tuple)):
        return given
    is_traced = any(isinstance(each, Tracer) for each in _items(given))
    return list(map(_of_arrays, given)) if is_traced else np.array(given)


def _outer_shape(given: Any) -> tuple[int, ...]:
    """The extents of nested lists. Raises NumPy's error for lists of different lengths."""
    if not isinstance(given, (list, tuple)):
        return ()
    inner = {_outer_shape(each) for each in given}
    if len(inner) > 1:
        np.array([np.zeros(each) for each in inner])  # NumPy's error
    return (len(given), *inner.pop())


def _joined(given: Any, items: list[Any]) -> Any:
    found = FUNCTIONS["stack"](items)
    return FUNCTIONS["reshape"](found, (*_outer_shape(given), *found.shape[1:]))


def asarray(
    given: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None, like: Any = None
) -> Any:
    """np.asarray."""
    del device, like
    return array(given, dtype, copy=copy, order=order)


class Converter:
    """What NumPy's source takes apart and wraps arrays with: numpy._core._multiarray_umath._array_converter."""

    def __init__(self, *given: Any) -> None:
        self.given, self.arrays = given, [asarray(each) for each in given]
        self.scalar_input = tuple(np.ndim(each) == 0 and not _is_array(each) for each in given)

    def __getitem__(self, place: int) -> Any:
        return self.arrays[place]

    def as_arrays(self, subok: bool = True, pyscalars: str = "convert_if_no_array") -> tuple[Any, ...]:
        """The arrays."""
        del subok, pyscalars
        return tuple(self.arrays)

    def result_type(self, extra_dtype: Any = None, ensure_inexact: bool = False) -> np.dtype[Any]:
        """Their common dtype."""
        extra = [each for each in (extra_dtype, 0.0 if ensure_inexact else None) if each is not None]
        found: np.dtype[Any] = FUNCTIONS["result_type"](*self.given, *extra)
        return found

    def wrap(self, found: Any, to_scalar: bool | None = None) -> Any:
        """A result, which is a number if all that was given were numbers."""
        wants = all(self.scalar_input) if to_scalar is None else to_scalar
        return found[()] if wants and not found.ndim else found


def _is_array(given: Any) -> bool:
    return isinstance(given, np.ndarray)  # which tracers of numbers are not


def ascontiguousarray(given: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """np.ascontiguousarray."""
    del like
    return array(given, dtype, copy=None, order="C", ndmin=1)


def asfortranarray(given: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """np.asfortranarray."""
    del like
    return array(given, dtype, copy=None, order="F", ndmin=1)


def _of_known(name: str) -> Callable[..., Any]:
    """A function of NumPy that takes elements of an array, which may be known where the indices are traced."""
    function = getattr(np, name)

    @wraps(function, updated=())
    def take(*args: Any, **options: Any) -> Any:
        is_traced = any(isinstance(each, Tracer) for each in (*args, *options.values()))
        return (FUNCTIONS[name] if is_traced else function)(*args, **options)

    return take


def broadcast(*given: Any) -> Any:
    """np.broadcast, for its shape: what has this is one of the arrays as it is repeated."""
    if not any(isinstance(each, Tracer) for each in given):
        return np.broadcast(*given)
    return FUNCTIONS["broadcast_arrays"](*given)[0]


@dataclass(frozen=True)
class ArrayOfNumbers:
    """A function of NumPy that makes an array from numbers, with all arguments by position. names: of the last ones."""

    function: Callable[..., Any]
    names: tuple[str, ...]

    def __call__(self, *given: Any) -> Any:
        """The array that the function makes."""
        count = len(given) - len(self.names)
        return self.function(*given[:count], **dict(zip(self.names, given[count:], strict=True)))


def of_numbers(function: Callable[..., Any], is_traced: bool = False) -> Callable[..., Any]:
    """A function of NumPy that makes an array from numbers; from extents, calls of other extents make their own.

    is_traced: whether the array is traced even if no number is an extent, so that the traced function may write to it.
    """

    @wraps(function, updated=())
    def make(*args: Any, **options: Any) -> Any:
        given = [*args, *options.values()]
        found = _of_extents(ArrayOfNumbers(function, tuple(options)), given) if any(map(is_extent, given)) else None
        if found is not None:
            return found
        plainly = function(*map(plain, args), **{name: plain(each) for name, each in options.items()})
        return tracer.made(_trace(), tracer._operand(_trace(), plainly)) if is_traced else _known_array(plainly)

    return make


ARANGE, EYE, TRI = of_numbers(np.arange, True), of_numbers(np.eye, True), of_numbers(np.tri)


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: Any = float, order: Any = "C", *, device: Any = None,  # noqa: N803
    like: Any = None,
) -> Any:  # fmt: skip
    """np.eye."""
    if order == "C" and (sides := _sides(N, M, k)):
        return np.equal(*sides).astype(float if dtype is None else dtype)
    return EYE(N, M, k, dtype, order, device=device, like=like)


def identity(n: int, dtype: Any = None, *, like: Any = None) -> Any:
    """np.identity."""
    return eye(n, dtype=float if dtype is None else dtype, like=like)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Any:  # noqa: N803
    """np.tri, as NumPy's own source calls it."""
    sides = _sides(N, M, k) if is_extent(k) or isinstance(k, int | np.integer) else None  # NumPy takes any number
    return np.greater_equal(*sides).astype(dtype) if sides else TRI(N, M, k, dtype)


def _sides(rows: Any, columns: Any, k: Any) -> tuple[Any, Any] | None:
    """A column and a row: an element is on or below diagonal k as they compare. None if the matrix is small."""
    columns = rows if columns is None else columns
    rows, columns, k = (each if is_extent(each) else operator.index(each) for each in (rows, columns, k))
    if rows < 1 or columns < 1 or rows * columns < LARGE:
        return None
    sides = rows + columns
    kind = np.int32 if sides + k < 1 << 31 and sides - k < 1 << 31 else np.int64
    return ARANGE(rows, dtype=kind)[:, None], ARANGE(0 - k, columns - k, dtype=kind)


def _of_extents(make: ArrayOfNumbers, given: Sequence[Any]) -> Any:
    """An array made from numbers, some of which are extents; None if calls of other extents cannot make theirs."""
    trace: Trace = next(each.extents._trace for each in given if is_extent(each))
    if trace.has_looked or not all(is_extent(each) or isinstance(each, PLAIN) for each in given):
        return None
    if any(is_extent(each) and each.derived is None for each in given):
        return None
    trace.extents.is_asked = True
    try:
        derived = trace.extents.constant(make, [each.derived if is_extent(each) else each for each in given])
    except Exception:  # NumPy's error, which the traced function may catch
        return None
    dtype = from_numpy(derived.now.dtype)
    if dtype is None:
        return None
    memory = trace.constant(derived.now, dtype, derived)
    return tracer.made(trace, trace.read(memory, (), memory.base))


CREATION.update(
    {
        np.zeros: zeros, np.empty: zeros, np.ones: ones, np.full: full,
        np.eye: eye, np.identity: identity,
        **{each: of_numbers(each) for each in OF_NUMBERS},
        np.array: array, np.asarray: asarray, np.asanyarray: asarray, np.ascontiguousarray: ascontiguousarray,
        np.take: _of_known("take"), np.take_along_axis: _of_known("take_along_axis"),
        np.asfortranarray: asfortranarray, np.broadcast: broadcast, UMATH._array_converter: Converter,
    }
)  # fmt: skip
METHODS.update({"__array_namespace__": lambda _: NUMPY, "_array": array})
