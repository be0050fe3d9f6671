"""The part of a traced array that a mask picks: its size is not known, but its elements and totals are computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusec.errors.fusing import NotFusable
from fusec.fusion.trace import elementwise, tracer
from fusec.fusion.trace.indices import has_mask, is_known_mask, is_mask
from fusec.fusion.trace.tables import FUNCTIONS, METHODS, cure_for
from fusec.fusion.trace.trace import here
from fusec.fusion.trace.tracer import Tracer, made

ELEMENTWISE = frozenset("where clip round around nan_to_num isclose real imag angle fix astype conj conjugate".split())
TOTALS = frozenset("sum prod mean var std any all count_nonzero nansum nanprod nanmean nanvar nanstd".split())
UFUNCS = {"add": "sum", "multiply": "prod", "logical_and": "all", "logical_or": "any"}
PART = "the part of an array that a mask picks"
_CURES = {
    "max amax nanmax": "write x.max(where=mask, initial=-np.inf), whose initial= is the result if nothing is picked",
    "min amin nanmin": "write x.min(where=mask, initial=np.inf), whose initial= is the result if nothing is picked",
    "size shape": "write mask.sum(), which counts what the mask picks",
    "median nanmedian": "write np.nanmedian(np.where(mask, x, np.nan))",
    "percentile nanpercentile": "write np.nanpercentile(np.where(mask, x, np.nan), q)",
    "quantile nanquantile": "write np.nanquantile(np.where(mask, x, np.nan), q)",
    "argmax": "write np.where(mask, x, -np.inf).argmax(), which is a position in x",
    "argmin": "write np.where(mask, x, np.inf).argmin(), which is a position in x",
    "cumsum": "write np.where(mask, x, 0).cumsum(), which has the shape of x",
}
CURES = {name: cure for names, cure in _CURES.items() for name in names.split()}


class Picked(np.lib.mixins.NDArrayOperatorsMixin):
    """x[mask], where the mask has the first axes of x. whole: what x was then, or what was computed of all of it."""

    def __init__(self, whole: Tracer, mask: Tracer) -> None:
        self._whole, self._mask = whole, mask
        self._line = here()

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype."""
        return self._whole.dtype

    @property
    def ndim(self) -> int:
        """The number of axes: one stands for those of the mask."""
        return self._whole.ndim - self._mask.ndim + 1

    def refuse(self, what: str = PART, name: str = "nonzero") -> Any:
        """Raise the error for what needs the number of elements. name: the function of NumPy that does."""
        cure = CURES.get(name) or cure_for("nonzero")
        if self.dtype.kind in "iu":
            cure = cure.replace("-np.inf", "np.iinfo(x.dtype).min").replace("np.inf", "np.iinfo(x.dtype).max")
        raise NotFusable(what, cure).at(self._line)

    def stored_in(self, target: Tracer, mask: Tracer) -> Any:
        """What is stored by target[mask] = self. Raises NotFusable if another mask picked it."""
        is_same = mask.shape == self._mask.shape and mask._read().expr is self._mask._read().expr
        if not is_same or target.shape != self._whole.shape:
            self.refuse("elements that one mask picks, stored where another one does,")
        return self._whole

    def _wholes(self, given: Any) -> Any:
        """Operands for all elements. Raises NotFusable for those with as many elements as are picked."""
        if isinstance(given, Picked):
            return given.stored_in(self._whole, self._mask)
        if np.ndim(given) >= self.ndim:
            self.refuse("an array with as many elements as a mask picks")
        return given

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, **options: Any) -> Any:
        if method == "reduce" and ufunc.__name__ in UFUNCS:
            return self._total(UFUNCS[ufunc.__name__], args, {"axis": 0, **options})
        (out,) = options.pop("out", (None,))
        if method != "__call__" or options or ufunc.signature or (out is not None and out is not self):
            self.refuse()
        found = ufunc(*map(self._wholes, args))
        if out is None:
            made = [Picked(each, self._mask) for each in (found if ufunc.nout > 1 else (found,))]
            return tuple(made) if ufunc.nout > 1 else made[0]
        if not np.can_cast(found.dtype, self.dtype, "same_kind"):
            ufunc(np.empty(1, found.dtype), 1, out=np.empty(1, self.dtype))  # NumPy's error
        self._whole = found.astype(self.dtype)
        return self

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        del types
        name = function.__name__
        if name in TOTALS:
            return self._total(name, args, options)
        if name not in ELEMENTWISE:
            self.refuse(f"np.{name} of {PART}", name)
        named = {key: self._wholes(each) for key, each in options.items()}
        return Picked(FUNCTIONS[name](*map(self._wholes, args), **named), self._mask)

    def _total(self, name: str, args: Any, options: Any) -> Any:
        """A total of the picked elements, over all axes or over the one that stands for those of the mask."""
        options = {key: each for key, each in options.items() if each is not None and each is not np._NoValue}
        axis = args[1] if len(args) > 1 else options.pop("axis", None)
        if len(args) > 2 or axis not in (None, 0) or not options.keys() <= {"dtype", "ddof", "correction"}:
            self.refuse(f"np.{name} of {PART}")
        axes = None if axis is None else tuple(range(self._mask.ndim))
        rest = (None,) * (self._whole.ndim - self._mask.ndim)
        mask = np.broadcast_to(self._mask[(..., *rest)], self._whole.shape)
        if name == "count_nonzero":
            return FUNCTIONS["sum"](np.not_equal(self._whole, 0) & mask, axes)
        return FUNCTIONS[name](self._whole, axes, where=mask, **options)

    def __getattr__(self, name: str) -> Any:
        if name in TOTALS:
            return lambda *args, **options: self._total(name, (self, *args), options)
        if name in ELEMENTWISE:
            return lambda *args, **options: Picked(METHODS[name](self._whole, *args, **options), self._mask)
        if name == "copy":
            return lambda *_: Picked(self._whole, self._mask)
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(f"'numpy.ndarray' object has no attribute '{name}'")
        return self.refuse(f"'{name}' of {PART}", name)

    def _refused(self, *_: Any) -> Any:
        return self.refuse()

    def __len__(self) -> int:
        return int(self.refuse(f"the length of {PART}", "size"))

    __iter__ = __getitem__ = __setitem__ = __bool__ = __contains__ = __array__ = _refused
    __str__ = __repr__ = __format__ = _refused


def picked(x: Tracer, index: Any) -> Picked:
    """x[mask]; integers may be before the mask, and any indices behind it. Raises NumPy's error for other shapes."""
    x, mask = _taken_apart(x, index)
    return Picked(made(x._trace, x._read()), made(x._trace, _checked(x, mask)._read()))


def _taken_apart(x: Tracer, index: Any, stores_number: bool = False) -> tuple[Tracer, Tracer]:
    """A view of an array, and the mask that picks from its first axes. Raises NotFusable."""
    items = [_traced(x, each) for each in (index if isinstance(index, tuple) else (index,))]
    masks = [at for at, each in enumerate(items) if is_mask(each)]
    mask = items[masks[0]]
    for at in [at for at, each in enumerate(items[: masks[0]]) if each is ...]:
        taken = sum(each is not None for each in items) - 2 + mask.ndim  # axes, by all but this and the mask
        items[at : at + 1] = (slice(None),) * (x.ndim - taken)
        masks[0] += x.ndim - taken - 1
    before, after = items[: masks[0]], items[masks[0] + 1 :]
    if before and stores_number and all(isinstance(each, slice) for each in before):
        axes = range(len(before), len(before) + mask.ndim)
        x, before = np.moveaxis(x[tuple(before)], axes, range(mask.ndim)), []
        after = [*(slice(None),) * masks[0], *after]
    if len(masks) > 1 or not all(isinstance(each, (int, np.integer)) for each in before):
        cure = "write np.where(mask, a, b), whose mask broadcasts, or x.sum(where=mask)"
        raise NotFusable("a mask beside other indices", cure).at(here())
    x = _part(x, before)
    return _part(x, [*(slice(None),) * mask.ndim, *after]) if after else x, mask


def _traced(x: Tracer, each: Any) -> Any:
    """Part of an index; masks that are known as traced ones."""
    return made(x._trace, tracer._operand(x._trace, np.asarray(each))) if is_known_mask(each) else each


def _part(x: Tracer, items: Sequence[Any]) -> Tracer:
    """A view of an array, also where it has no axes."""
    return x[tuple(items) if any(each is ... for each in items) else (*items, ...)]  # type: ignore[no-any-return]


def check_mask(x: Any, mask: Any, start: int = 0) -> None:
    """Raise NumPy's IndexError unless a mask has the extents of axes of an array. start: the first of these."""
    if start + mask.ndim > x.ndim:
        text = f"array is {x.ndim}-dimensional, but {start + mask.ndim} were indexed"
        raise IndexError(f"too many indices for array: {text}")
    for axis, (extent, own) in enumerate(zip(mask.shape, x.shape[start:], strict=False), start):
        if extent != own:
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis}; size of axis is {own} but size of "
                f"corresponding boolean axis is {extent}"
            )


def _checked(x: Tracer, mask: Tracer) -> Tracer:
    check_mask(x, mask)
    return mask


def store(x: Tracer, index: Any, given: Any) -> None:
    """x[mask] = given. Raises NotFusable for as many values as the mask picks, unless it picked them too."""
    whole, (x, mask) = x, _taken_apart(x, index, not isinstance(given, Picked) and not np.ndim(given))
    rest = x.ndim - _checked(x, mask).ndim
    if isinstance(given, Picked):
        given = given.stored_in(x, mask)
    elif np.ndim(given) == rest + 1 and np.shape(given)[0] == 1:
        given = given[0]
    elif np.ndim(given) > rest and not has_mask(index):
        METHODS["_scatter"](whole, index, given)
        return
    elif np.ndim(given) > rest:
        raise NotFusable("a mask that picks elements", "write x[...] = np.where(mask, value, x)").at(here())
    value = tracer._operand(x._trace, given)
    if value.is_weak:
        value = x._trace.adapted(value, elementwise.known_dtype(x.dtype))
    where = mask[(..., *(None,) * rest)]._read()
    x[...] = made(x._trace, elementwise.choose(x._trace, where, value, x._read()))


Picked.__name__ = Picked.__qualname__ = "ndarray"  # in messages of Python's
METHODS.update({"_Picked": Picked, "_picked": picked, "_store_picked": store})
FUNCTIONS["extract"] = lambda condition, arr: arr[condition.astype(bool)]
