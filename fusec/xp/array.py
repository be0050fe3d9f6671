"""The lazy array."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import prod
from typing import Any, Self, TypeVar

import numpy as np

from fusec.errors.lazy import SilentCopy
from fusec.xp.forms import CPU, Device, is_held, refused
from fusec.xp.keys import any_of, is_array, is_mask, plain
from fusec.xp.loading import on_device
from fusec.xp.missing import note_missing
from fusec.xp.native import ask_for_builtins, find_names
from fusec.xp.operators import binary, power, unary
from fusec.xp.recording import NUMBERS, Recorded, beside, eager, is_computed, lazy, record, valued, wrapped, written_now
from fusec.xp.refusals import refusal, refusing
from fusec.xp.sharing import WRITTEN, writers
from fusec.xp.signatures import repeated, sliced
from fusec.xp.tape import AT_FIRST
from fusec.xp.writes import IN_PLACE, apart_from_out, check_number, in_place, is_read_elsewhere, store, write

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
Call = Callable[..., Any]
N = TypeVar("N", bound=complex)
PLAIN_KEYS = frozenset((int, slice))
"""Types of keys that select a part without any further check."""


class Array(Recorded):
    """An array whose elements are computed when someone looks at them.

    Operations give new arrays at once and record what is to be computed; all of it that has come together runs as a few
    kernels when an element is printed, converted or compared in an `if`. Shapes, dtypes and errors about them are those
    of NumPy, and come at once. Indices and reshapes are views: a write through one is seen through all others.
    Raises what NumPy raises for these shapes and dtypes, when an operation is recorded.

    >>> import fusec.xp as xp
    >>> x = xp.asarray([1.0, 2.0, 3.0])
    >>> (x * x).sum()
    Array(14.)
    """

    __slots__ = ()
    __array_priority__ = 100.0
    __hash__ = None  # type: ignore[assignment]  # as NumPy's

    # --- what is known of arrays ---------------------------------------------------------------------------------

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return self._form.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return self._form.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._form.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self._form.shape)

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self._form.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return prod(self._form.shape) * self._form.dtype.itemsize

    @property
    def device(self) -> Device:
        """Where the elements are."""
        return self._form.device

    @refusing
    def to_device(self, device: Device | str, /, *, stream: Any = None) -> Array:
        """The array on a device: itself if it is there, else a copy.

        stream: an object of CuPy or PyTorch, or a handle; the copy is enqueued on it. Raises NoSuchDevice.
        """
        if self.device == device:
            return self
        return lazy(on_device().moved(valued(self), self.device, device, stream))  # type: ignore[no-any-return]

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        if api_version not in (None, *VERSIONS):
            text = f"there is no version {api_version!r} of the array API: ask for one of {VERSIONS}"
            raise refusal(ValueError(text))
        return sys.modules["fusec.xp"]

    def __len__(self) -> int:
        if not self.shape:
            raise refusal(TypeError("len() of unsized object"))
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        if not self.shape:
            raise refusal(TypeError("iteration over a 0-d array"))
        return (self[at] for at in range(len(self)))

    # --- elements ------------------------------------------------------------------------------------------------

    def compute(self) -> Self:
        """Compute the elements now; the array itself."""
        valued(self)
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if self.device != CPU:
            raise SilentCopy(self.device).at()
        return np.array(valued(self), dtype=dtype, copy=copy)

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        if self.device == CPU:
            raise AttributeError("arrays in host memory have no __cuda_array_interface__")
        return valued(self).__cuda_array_interface__  # type: ignore[no-any-return]

    def __dlpack__(
        self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None, copy: bool | None = None,
    ) -> Any:  # fmt: skip
        options = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
        if self.device == CPU:
            return valued(self).__dlpack__(stream=stream, **options)
        return on_device().exported(valued(self), stream, options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0) if self.device == CPU else (2, int(self.device[5:]))

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """The capsules of Arrow's C data interface, for an array of one axis in host memory.

        requested_schema: left aside; the type is that of the elements. Raises NoArrowArray, and SilentCopy.
        """
        if self.device != CPU:
            raise SilentCopy(self.device).at()
        from fusec.xp.arrow import exported

        return exported(valued(self))

    @refusing
    def item(self, *index: Any) -> Any:
        """An element as a Python number."""
        return looked(self).item(*index)

    def tolist(self) -> Any:
        """The elements as Python numbers, in nested lists."""
        return looked(self).tolist()

    def __bool__(self) -> bool:
        return _number(bool, self)

    def __int__(self) -> int:
        return _number(int, self)

    def __float__(self) -> float:
        return _number(float, self)

    def __complex__(self) -> complex:
        return _number(complex, self)

    def __index__(self) -> int:
        return _number(operator.index, self)

    def __contains__(self, item: Any) -> bool:
        return bool((self == item).any())

    def __repr__(self) -> str:
        return repr(looked(self)).replace("array(", "Array(", 1)

    def __str__(self) -> str:
        return str(looked(self))

    @refusing
    def __format__(self, spec: str) -> str:
        found = looked(self)
        if spec and found.ndim:
            raise TypeError("unsupported format string passed to Array.__format__")
        return format(found[()], spec)

    @refusing
    def __round__(self, digits: int | None = None) -> Any:
        if self.shape:
            raise TypeError("type Array doesn't define __round__ method")
        return round(self.item()) if digits is None else record(np.round, self, digits)

    def __copy__(self) -> Array:
        return record(np.copy, self)  # type: ignore[no-any-return]

    def __deepcopy__(self, _: Any) -> Array:
        return record(np.copy, self)  # type: ignore[no-any-return]

    def __reduce__(self) -> Any:
        if self.device == CPU:
            return wrapped, (valued(self),)
        return _restored, (looked(self), str(self.device))

    def __dask_tokenize__(self) -> Any:
        if (chunks := sys.modules.get("dask.array.chunk_types")) is not None:
            chunks.register_chunk_type(Array)  # so that dask's operators take lazy arrays
        return "fusec.xp", str(self.device), looked(self)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes

    # --- views and writes ----------------------------------------------------------------------------------------

    def __getitem__(self, key: Any, /) -> Array:
        tape, kind = self._tape, key.__class__
        if tape is None:
            if kind in PLAIN_KEYS and self._form.device is CPU and not WRITTEN:
                try:
                    return wrapped(valued(self)[key])  # type: ignore[no-any-return]
                except IndexError as problem:
                    raise refusal(problem)  # noqa: B904 - it says so
        elif kind is slice and (found := sliced(tape, self, key)) is not None:
            return found  # type: ignore[no-any-return]
        return self._part(key)  # type: ignore[no-any-return]

    @repeated
    def _part(self, key: Any) -> Any:
        key = plain(key, self)
        if any_of(is_mask, key):
            return eager(operator.getitem, (self, key), {})
        if any_of(is_array, key):
            return record(operator.getitem, self, key)
        if self._tape is None and WRITTEN and is_read_elsewhere(self, key):
            is_computed(self)
        return self._viewed(operator.getitem, key)

    def __setitem__(self, key: Any, value: Any, /) -> None:
        try:
            value = beside(value, self) if isinstance(value, (list, tuple)) else value
            store(self, plain(key, self), value)
        except Exception as problem:
            raise refusal(problem)  # noqa: B904 - it says so

    def fill(self, value: Any) -> None:
        """Write a number to all elements, as numpy.ndarray.fill does."""
        if type(value) in NUMBERS or isinstance(value, np.generic):
            check_number(value, self._form)
        write(_fill, self, value)

    @repeated
    def view(self, dtype: Any = None) -> Array:
        """A view whose elements have another dtype and the same bits; without a dtype, a view of the same elements.

        Raises ValueError if the bytes of the last axis are not whole elements, and NotADType for a dtype that is not
        held, or is in another byte order.
        """
        if dtype is None:
            return self._viewed(operator.getitem, ...)
        dtype = np.dtype(dtype)
        if not is_held(dtype):
            raise refused(dtype, "write np.asarray(x).view(...), which makes a NumPy array")
        return self._viewed(_with_bits, dtype)

    def _viewed(self, function: Call, *args: Any, **options: Any) -> Array:
        """What a function makes of the array without a copy."""
        if self._tape is None and self.device == CPU and not (WRITTEN and writers(self._value)):
            key: Any = () if self._form.is_number else ...
            return wrapped(function(valued(self)[key], *args, **options))  # type: ignore[no-any-return]
        return record(function, self, *args, **options)  # type: ignore[no-any-return]

    @property
    def T(self) -> Array:  # noqa: N802 - NumPy's name
        """The transpose."""
        return self._viewed(np.transpose) if self._tape is None else self._reversed()

    @repeated
    def _reversed(self) -> Array:
        return self._viewed(np.transpose)

    @property
    @repeated
    def mT(self) -> Array:  # noqa: N802 - NumPy's name
        """The array with its last two axes exchanged. Raises ValueError for less than two axes."""
        return self._viewed(np.matrix_transpose)

    @property
    @repeated
    def real(self) -> Array:
        """The real part, a view."""
        return self._viewed(np.real)

    @real.setter
    def real(self, given: Any) -> None:
        """Store it."""
        self.real[...] = given

    @property
    @repeated
    def imag(self) -> Array:
        """The imaginary part, a view; of real numbers zeros that cannot be written."""
        if self.dtype.kind != "c" and self._form.device == CPU:
            zeros = np.zeros(self.shape, self.dtype)
            zeros.flags.writeable = False
            return wrapped(zeros)  # type: ignore[no-any-return]
        return self._viewed(np.imag)

    @imag.setter
    def imag(self, given: Any) -> None:
        """Store it."""
        self.imag[...] = given

    @repeated
    def reshape(self, *shape: Any, order: Any = "C", copy: bool | None = None) -> Array:
        """The elements in another shape, a view if that is possible."""
        return self._viewed(np.reshape, shape[0] if len(shape) == 1 else shape, order=order, copy=copy)

    @repeated
    def transpose(self, *axes: Any) -> Array:
        """A view with the axes in another order, or in reverse."""
        return self._viewed(np.transpose, (axes[0] if len(axes) == 1 else axes) or None)

    @repeated
    def astype(self, dtype: Any, order: Any = "K", casting: Any = "unsafe", *, copy: bool = True) -> Array:
        """The elements as another dtype, in the machine's byte order. Raises NotADType for one that is not held."""
        dtype = np.dtype(dtype).newbyteorder("=")
        if not copy and dtype == self.dtype and order == "K":
            return self
        if not is_held(dtype):
            raise refused(dtype, "write np.asarray(x).astype(...), which makes a NumPy array")
        return record(_as_type, self, dtype, order, casting)  # type: ignore[no-any-return]

    # --- operators -----------------------------------------------------------------------------------------------

    __add__, __radd__ = binary(np.add), binary(np.add, True)
    __sub__, __rsub__ = binary(np.subtract), binary(np.subtract, True)
    __mul__, __rmul__ = binary(np.multiply), binary(np.multiply, True)
    __truediv__, __rtruediv__ = binary(np.divide), binary(np.divide, True)
    __floordiv__, __rfloordiv__ = binary(np.floor_divide), binary(np.floor_divide, True)
    __mod__, __rmod__ = binary(np.remainder), binary(np.remainder, True)
    __pow__, __rpow__ = power(), binary(operator.pow, True)
    __matmul__, __rmatmul__ = binary(np.matmul), binary(np.matmul, True)
    __lshift__, __rlshift__ = binary(np.left_shift), binary(np.left_shift, True)
    __rshift__, __rrshift__ = binary(np.right_shift), binary(np.right_shift, True)
    __and__, __rand__ = binary(np.bitwise_and), binary(np.bitwise_and, True)
    __or__, __ror__ = binary(np.bitwise_or), binary(np.bitwise_or, True)
    __xor__, __rxor__ = binary(np.bitwise_xor), binary(np.bitwise_xor, True)

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self, other % self

    __eq__, __ne__ = binary(np.equal), binary(np.not_equal)
    __lt__, __le__ = binary(np.less), binary(np.less_equal)
    __gt__, __ge__ = binary(np.greater), binary(np.greater_equal)
    __neg__, __pos__ = unary(np.negative), unary(np.positive)
    __invert__, __abs__ = unary(np.invert), unary(np.absolute)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        if not isinstance(ufunc, np.ufunc):  # one of fusec's own functions
            return eager(function, inputs, options if out is None else {**options, "out": out})
        if method == "at":
            return write(function, *inputs)
        if function is ufunc and out is None and not options and ufunc in OPERATORS:
            left, right = inputs
            straight, swapped = OPERATORS[ufunc]
            found = straight(left, right) if isinstance(left, Array) else swapped(right, left)
            if found is not NotImplemented:
                return found
        return called(function, inputs, options, out[0] if isinstance(out, tuple) and len(out) == 1 else out)

    @classmethod
    def __fusec_call__(cls, function: Any, args: Any, options: Any) -> Any:
        return eager(function, args, options)  # it may read anything

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        del types
        if function in WRITES_FIRST:
            others = {**options}
            target, *args = args or (others.pop(WRITES_FIRST[function]),)
            return write(function, target, *args, **others)
        return called(function, *apart_from_out(function, args, options))


UFUNCS = [each for each in vars(np).values() if isinstance(each, np.ufunc) and each.nin == 2 and each.nout == 1]
OPERATORS = {
    each: (binary(each), binary(each, True)) for each in UFUNCS if each.signature is None and each is not np.power
}
"""NumPy's ufuncs of two operands, recorded like operators."""

Recorded.kind = Array
note_missing(Array)
AT_FIRST.append(ask_for_builtins)
find_names()
_record = repeated(record)


def called(function: Call, args: Any, options: Mapping[str, Any], out: Any) -> Any:
    """A function of NumPy's, whose result may have a target."""
    if out is None:
        return _record(function, *args, **options)
    if not isinstance(out, Array):
        written_now(function, args, {**options, "out": out}, *(out if isinstance(out, tuple) else (out,)))
        return out
    write(_into, out, function, args, tuple(options.items()))
    return out


def _fill(x: Any, value: Any) -> None:
    x.fill(value)


def _as_type(x: Any, dtype: Any, order: Any, casting: Any) -> Any:
    return x.astype(dtype, order, casting)


def _with_bits(x: Any, dtype: Any) -> Any:
    return x.view(dtype)


def _into(target: Any, function: Call, args: Any, options: Any) -> None:
    function(*args, out=target, **dict(options))


# --- methods of NumPy's arrays -----------------------------------------------------------------------------------

WRITES_FIRST = {
    np.copyto: "dst", np.fill_diagonal: "a", np.place: "arr", np.put: "a", np.put_along_axis: "arr", np.putmask: "a",
}  # fmt: skip
"""Functions that write their first argument, with its name."""

RECORDED = (
    "all any argmax argmin argpartition argsort choose clip conj conjugate copy cumprod cumsum dot flatten max mean min"
    " prod repeat round searchsorted std sum take trace var"
)
VIEWS = "diagonal ravel squeeze swapaxes"
WRITES = "partition put sort"
EAGER = "compress nonzero tobytes"


def _method(run: Call, name: str, is_view: bool = False) -> Call:
    call = partial(_of_array, name)
    call.__name__ = name  # type: ignore[attr-defined]

    def method(self: Array, *args: Any, **options: Any) -> Any:
        if is_view:
            return self._viewed(call, *args, **options)
        return run(call, self, *args, **options)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"As numpy.ndarray.{name}."
    return repeated(method)


def _of_array(name: str, array: Any, *args: Any, **options: Any) -> Any:
    return getattr(array, name)(*args, **options)


def _now(function: Call, *args: Any, **options: Any) -> Any:
    return eager(function, args, options)


for _run, _names in ((record, RECORDED), (record, VIEWS), (write, WRITES), (_now, EAGER)):
    for _name in _names.split():
        setattr(Array, _name, _method(_run, _name, _names is VIEWS))
for _run in IN_PLACE:
    setattr(Array, f"__{_run.__name__}__", in_place(_run))


# --- values ------------------------------------------------------------------------------------------------------


def looked(array: Array) -> Any:
    """The value of an array in host memory, to which it is copied if it is on a device."""
    return valued(array) if array.device == CPU else valued(array).numpy()


def _number(convert: Callable[[Any], N], array: Array) -> N:
    """The only element of an array as a number of Python's."""
    try:
        return convert(looked(array))
    except Exception as problem:
        raise refusal(problem)  # noqa: B904 - it says so


def _restored(values: Any, device: str) -> Any:
    """An array that was pickled on a device."""
    return wrapped(values).to_device(device)
