"""Products in host memory: by NumPy's BLAS in blocks, where it is known and nothing must be copied, else by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fusec.base import dtypes
from fusec.compiler.disk_cache import default_cache
from fusec.fusion.functions.matrix_products import Arrangement, Terms, is_product, terms_of, uncopied
from fusec.fusion.memory.slots import Fresh
from fusec.fusion.trace.trace_values import Array, Leaf, LibraryCall
from fusec.runtime.cpu import blas, memory, products
from fusec.runtime.cpu.fastcall import address_reader

MOST_CALLS = 256  # of products whose starts stand in a table
MOST_KNOWN = 64  # layouts of operands of one call
_ADDRESS_OF = address_reader()


class HostProduct:
    """A product of two arrays, whose result is new. function: what NumPy calls."""

    def __init__(self, call: LibraryCall, function: Callable[..., Any], result: Fresh) -> None:
        self.call, self.function, self.result = call, function, result
        self._known: dict[Any, products.BlasProduct | None] = {}
        self._terms: dict[tuple[int, int], Terms] = {}

    def __call__(self, a: Array, b: Array) -> Any:
        """The product."""
        found = self.native(a, b)
        if found is None:
            return self.function(a, b)
        made = memory.empty(self.result.shape, self.result.dtype, self.result.order)
        found.run((_ADDRESS_OF(a), _ADDRESS_OF(b), _ADDRESS_OF(made)))
        return made

    def native(self, a: Array, b: Array) -> products.BlasProduct | None:
        """How BLAS multiplies arrays that lie like this; None if NumPy does."""
        dtype = self.result.dtype
        if a.dtype is not dtype or b.dtype is not dtype or not (a.flags.aligned and b.flags.aligned):
            return None
        key = a.shape, a.strides, b.shape, b.strides
        try:
            return self._known[key]
        except KeyError:
            pass
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        found = self._known[key] = self._planned(a, b)
        return found

    def _planned(self, a: Array, b: Array) -> products.BlasProduct | None:
        return self.planned(a, b, memory.empty(self.result.shape, self.result.dtype, self.result.order))

    def planned(self, a: Any, b: Any, made: Any, find: Callable[..., Any] = uncopied) -> products.BlasProduct | None:
        """How BLAS stores the product of arrays, or of forms, in another one. find: as `uncopied` does."""
        row = dtypes.from_numpy(a.dtype)
        assert row is not None, "BLAS takes it"
        terms = self._terms.get((a.ndim, b.ndim))
        if terms is None:
            terms = self._terms[a.ndim, b.ndim] = terms_of(self.call, a.ndim, b.ndim)
        tried = find(terms, *(Arrangement(each.shape, each.strides, row) for each in (a, b, made)))
        if tried is None or len(tried.starts) > MOST_CALLS:
            return None
        found = products.product(tried.sizes, tried.matrices, _swapped(tried), a.dtype, default_cache)
        if found is None or not tried.is_swapped:
            return found
        return found.swapped()


def _swapped(tried: Any) -> list[tuple[int, ...]]:
    """The starts in the order of the matrices."""
    return [(each[1], each[0], each[2]) if tried.is_swapped else each for each in tried.starts]


def host_product(
    call: LibraryCall, leaves: Sequence[Leaf], function: Callable[..., Any], result: Fresh
) -> HostProduct | None:
    """A product in place of a call; None if it is none that BLAS computes. leaves: the operands."""
    if not is_product(call) or not blas.takes(result.dtype) or blas.library() is None:
        return None
    one, other = leaves
    if one.buffer is other.buffer and one.phantom.strides == other.phantom.strides[::-1]:
        return None  # NumPy computes half of a product of a matrix and its transpose
    return HostProduct(call, function, result)
