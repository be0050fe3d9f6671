"""Arrays as numbers alone: where views of them lie, for extents that may be symbols of a recorded run.

An `ArrayForm` stands for a phantom where rules for other extents are recorded (`fusec.base.recorded`). It takes the
steps of views: indices, and those functions of NumPy that only put axes elsewhere, reverse, repeat or split them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from operator import index
from typing import Any

import numpy as np

from fusec.arguments.operands import WRITEABLE, is_writeable
from fusec.base.kernel_abi import strides_in_order
from fusec.base.recorded import NotRecordedError, is_symbol
from fusec.base.records import dataclass

Shape = tuple[int, ...]
MOVES = (
    np.transpose, np.permute_dims, np.matrix_transpose, np.swapaxes, np.moveaxis, np.rollaxis, np.squeeze,
    np.flip, np.fliplr, np.flipud, np.rot90, np.atleast_1d, np.atleast_2d, np.atleast_3d,
)  # fmt: skip
"""NumPy's functions that put axes elsewhere, reverse them, and make and drop axes of one element."""


@dataclass
class ArrayForm:
    """An array of which nothing may be read. start: of its first element, in bytes from that of some whole array;
    content: the symbol of an array that calls make, if it is all of one.
    """

    start: int
    shape: Shape
    strides: Shape
    dtype: np.dtype[Any]
    writeable: bool = True
    content: Any = None

    @property
    def ndim(self) -> int:
        """Axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def flags(self) -> FormFlags:
        """What NumPy says of such memory."""
        return FormFlags(self)

    @property
    def T(self) -> ArrayForm:  # noqa: N802 - NumPy's name
        """The transpose."""
        return self.placed(self.start, self.shape[::-1], self.strides[::-1])

    def placed(self, start: int, shape: Sequence[int], strides: Sequence[int]) -> ArrayForm:
        """Other elements of the same memory."""
        return ArrayForm(start, tuple(shape), tuple(strides), self.dtype, self.writeable)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> ArrayForm:
        items = [*index] if isinstance(index, tuple) else [index]
        taken = sum(1 for each in items if each is not None and each is not ...)
        if taken > self.ndim:
            raise IndexError("too many indices for array")
        dots = next((at for at, each in enumerate(items) if each is ...), len(items))
        items[dots : dots + 1] = [slice(None)] * (self.ndim - taken)
        start, axis = self.start, 0
        shape: list[int] = []
        strides: list[int] = []
        for item in items:
            if item is None:
                shape.append(1)
                strides.append(0)
                continue
            extent, stride = self.shape[axis], self.strides[axis]
            axis += 1
            if isinstance(item, slice):
                first, count, step = _sliced(item, extent)
                start = start + first * stride
                shape.append(count)
                strides.append(stride * step)
            else:
                if not -extent <= item < extent:
                    raise IndexError("index is out of bounds")
                start = start + (item + extent if item < 0 else item) * stride
        return self.placed(start, shape, strides)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        del types
        if function in MOVES:
            return _moved(self, function, args[1:], options)
        known = FUNCTIONS.get(function)
        if known is None:
            raise NotRecordedError
        return known(*args, **options)


class FormFlags:
    """x.flags of a form."""

    def __init__(self, form: ArrayForm) -> None:
        self.form = form

    @property
    def writeable(self) -> bool:
        """Whether elements may be written."""
        return bool(self.form.writeable)

    @property
    def num(self) -> int:
        """Of NumPy's bits, that of arrays which may be written."""
        return WRITEABLE if self.writeable else 0

    @property
    def c_contiguous(self) -> bool:
        """Whether elements are dense in C order."""
        return _is_dense(self.form.shape, self.form.strides, self.form.itemsize)

    @property
    def f_contiguous(self) -> bool:
        """The same of the transpose."""
        return _is_dense(self.form.shape[::-1], self.form.strides[::-1], self.form.itemsize)

    @property
    def fnc(self) -> bool:
        """Whether elements are dense in the order of the transpose alone."""
        return self.f_contiguous and not self.c_contiguous

    @property
    def forc(self) -> bool:
        """Whether elements are dense in one of both orders."""
        return self.c_contiguous or self.f_contiguous

    contiguous = c_contiguous


def _is_dense(shape: Shape, strides: Shape, nbytes: int) -> bool:
    if any(extent == 0 for extent in shape):
        return True
    for extent, stride in zip(shape[::-1], strides[::-1], strict=True):
        if extent != 1:
            if stride != nbytes:
                return False
            nbytes = nbytes * extent
    return True


def _sliced(item: slice, extent: int) -> tuple[int, int, int]:
    """Where a slice of an axis begins, how many elements it has, and how far they are apart."""
    step = 1 if item.step is None else item.step
    start, stop = (each if each is None or is_symbol(each) else index(each) for each in (item.start, item.stop))
    low, high = (0, extent) if step > 0 else (-1, extent - 1)
    start = (low if step > 0 else high) if start is None else _clipped(start, extent, low, high)
    stop = (high if step > 0 else low) if stop is None else _clipped(stop, extent, low, high)
    apart, far = (stop - start, step) if step > 0 else (start - stop, -step)
    if apart <= 0:
        return 0, 0, 1
    return start, apart if far == 1 else (apart + far - 1) // far, step


def _clipped(place: int, extent: int, low: int, high: int) -> int:
    """The end of a slice within an axis."""
    place = place + extent if place < 0 else place
    return low if place < low else high if place > high else place


def _moved(form: ArrayForm, function: Callable[..., Any], args: Sequence[Any], options: Any) -> ArrayForm:
    """What a function of `MOVES` makes: it is asked with an array whose strides tell its axes apart."""
    extents = [0 if extent == 0 else 1 if extent == 1 else 2 for extent in form.shape]
    codes = [2 * at + 2 for at in range(form.ndim)]
    like = np.lib.stride_tricks.as_strided(np.empty(1, "int8"), extents, codes)
    found = function(like, *args, **options)
    start = form.start
    shape, strides = [], []
    for extent, code in zip(found.shape, found.strides, strict=True):
        if abs(code) not in codes:  # a new axis
            shape.append(extent)
            strides.append(form.itemsize if code else 0)
            continue
        axis = abs(code) // 2 - 1
        shape.append(form.shape[axis])
        strides.append(form.strides[axis] if code > 0 else -form.strides[axis])
        if code < 0:
            start = start + (form.shape[axis] - 1) * form.strides[axis]
    return form.placed(start, shape, strides)


def repeated(form: ArrayForm, shape: Any, subok: bool = False) -> ArrayForm:
    """np.broadcast_to."""
    del subok
    wanted: Shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    lead = len(wanted) - form.ndim
    if lead < 0 or any(one != other and one != 1 for one, other in zip(form.shape, wanted[lead:], strict=True)):
        raise ValueError("operands could not be broadcast together")
    strides = [0 if extent == 1 else stride for extent, stride in zip(form.shape, form.strides, strict=True)]
    found = form.placed(form.start, wanted, [0] * lead + strides)
    found.writeable = False
    return found


def _reshaped(form: ArrayForm, shape: Any, order: str = "C", copy: Any = None, **_: Any) -> ArrayForm:
    """np.reshape without a copy."""
    if order != "C":
        raise NotRecordedError
    wanted = shape_of_size(form.size, tuple(shape) if isinstance(shape, (tuple, list)) else (shape,))
    strides = strides_of_shape(form.shape, form.strides, wanted, form.itemsize)
    if strides is None:
        if copy is False:
            raise ValueError("Unable to avoid creating a copy while reshaping.")
        raise NotRecordedError
    return form.placed(form.start, wanted, strides)


def _expanded(form: ArrayForm, axis: Any) -> ArrayForm:
    """np.expand_dims."""
    shape = np.expand_dims(np.empty([2] * form.ndim, "int8"), axis).shape
    rest = iter(form.shape)
    return _reshaped(form, tuple([1 if extent == 1 else next(rest) for extent in shape]))


def shape_of_size(size: int, shape: Shape) -> Shape:
    """A shape with an extent in place of -1. Raises ValueError for another size."""
    unknown = [at for at, extent in enumerate(shape) if extent == -1]
    rest = prod([extent for at, extent in enumerate(shape) if at not in unknown])
    if len(unknown) > 1 or (unknown and (rest == 0 or size % rest)) or (not unknown and rest != size):
        raise ValueError("cannot reshape array")
    return tuple([size // rest if at in unknown else extent for at, extent in enumerate(shape)])


def strides_of_shape(shape: Shape, strides: Shape, wanted: Shape, nbytes: int) -> Shape | None:
    """The strides that give an array another shape of as many elements; None if none do. As NumPy finds them."""
    if shape == wanted:
        return strides
    if _is_dense(shape, strides, nbytes) or all(extent == 1 for extent in shape):
        return strides_in_order(wanted, range(len(wanted)), nbytes)
    old = [(extent, stride) for extent, stride in zip(shape, strides, strict=True) if extent != 1]
    found: list[int] = []
    first = at = 0  # of the old axes, and of the new ones, that are not done
    while at < len(wanted) and first < len(old):
        last, end = first + 1, at + 1
        count, size = wanted[at], old[first][0]
        while count != size:
            if count < size:
                if end == len(wanted):
                    raise ValueError("cannot reshape array")
                count = count * wanted[end]
                end += 1
            else:
                size = size * old[last][0]
                last += 1
        for one, other in zip(old[first:last], old[first + 1 : last], strict=False):
            if one[1] != other[0] * other[1]:
                return None
        step, new = old[last - 1][1], []
        for extent in wanted[at:end][::-1]:
            new.append(step)
            step = step * extent
        found += new[::-1]
        first, at = last, end
    step = found[-1] if found else nbytes  # what is left has one element each
    if found:
        return (*found, *[step] * (len(wanted) - len(found)))
    return (nbytes,) * len(wanted)


def are_near(one: ArrayForm, other: ArrayForm) -> bool:
    """np.may_share_memory of views of one array."""
    if any(extent == 0 for extent in (*one.shape, *other.shape)):
        return False
    (low, high), (bottom, top) = (_bounds(each) for each in (one, other))
    return low < top and bottom < high


def _bounds(form: ArrayForm) -> tuple[int, int]:
    low = high = form.start
    for extent, stride in zip(form.shape, form.strides, strict=True):
        if stride < 0:
            low = low + (extent - 1) * stride
        else:
            high = high + (extent - 1) * stride
    return low, high + form.itemsize


def _diagonal(form: ArrayForm, offset: int = 0, axis1: int = 0, axis2: int = 1) -> ArrayForm:
    """np.diagonal."""
    if form.ndim < 2 or max(abs(2 * axis1 + 1), abs(2 * axis2 + 1)) > 2 * form.ndim:
        raise ValueError("no such axes")
    one, other = axis1 % form.ndim, axis2 % form.ndim
    low, high = (0, offset) if offset >= 0 else (-offset, 0)
    rows, columns = form.shape[one] - low, form.shape[other] - high
    count = columns if columns < rows else rows
    rest = [axis for axis in range(form.ndim) if axis not in (one, other)]
    shape = [*[form.shape[axis] for axis in rest], 0 if count < 0 else count]
    strides = [*[form.strides[axis] for axis in rest], form.strides[one] + form.strides[other]]
    found = form.placed(form.start + low * form.strides[one] + high * form.strides[other], shape, strides)
    found.writeable = False
    return found


def form_of(array: Any) -> Any:
    """An array as numbers alone."""
    if type(array) is ArrayForm:
        return array
    return ArrayForm(0, array.shape, array.strides, array.dtype, is_writeable(array))


def form_of_made(found: Any) -> Any:
    """An array that calls make of extents, as a form in a recorded run."""
    if not is_symbol(found):
        return found
    shape = tuple([found.part(f".shape[{at}]", extent) for at, extent in enumerate(found.now.shape)])
    strides = strides_in_order(shape, range(len(shape)), found.now.itemsize)
    return ArrayForm(0, shape, strides, found.now.dtype, True, found)


def windows(
    form: ArrayForm, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> ArrayForm:
    """np.lib.stride_tricks.sliding_window_view."""
    del subok
    sizes = tuple(window_shape) if isinstance(window_shape, (tuple, list)) else (window_shape,)
    axes = range(form.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    along = [each % form.ndim for each in axes]
    if len(along) != len(sizes) or any(size < 0 for size in sizes):
        raise ValueError("window shape does not fit")
    shape = list(form.shape)
    for at, size in zip(along, sizes, strict=True):
        if shape[at] < size:
            raise ValueError("window shape cannot be larger than input array shape")
        shape[at] = shape[at] - (size - 1)
    found = form.placed(form.start, [*shape, *sizes], [*form.strides, *[form.strides[at] for at in along]])
    found.writeable = writeable and form.writeable
    return found


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.broadcast_to: repeated,
    np.reshape: _reshaped,
    np.expand_dims: _expanded,
    np.may_share_memory: are_near,
    np.diagonal: _diagonal,
    np.lib.stride_tricks.sliding_window_view: windows,
}
