"""The tables that traced arrays consult; the modules that define the operations fill them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fusec.base.diagnostics import did_you_mean

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""NumPy's functions that are no ufuncs, by name."""

METHODS: dict[str, Callable[..., Any]] = {}
"""Methods of arrays, __array_ufunc__ and __array_namespace__."""

CREATION: dict[Any, Callable[..., Any]] = {}
"""By functions of NumPy's that make arrays: what traced functions call in place of them."""

ANY_EXTENTS = frozenset(
    "sum prod nansum nanprod max min amax amin nanmax nanmin any all mean nanmean var std ptp count_nonzero where clip"
    " abs astype copy conj conjugate real imag round around nan_to_num transpose permute_dims matrix_transpose swapaxes"
    " moveaxis rollaxis expand_dims flip fliplr flipud".split()
)
"""Functions and methods that do the same for arrays of all extents but 0 and 1; others look at extents."""

INSTEAD: dict[str, str] = {
    "bincount": "its size depends on values: np.histogram(x, bins=range(n + 1)) counts the integers below n",
    "lstsq": "the shape of the residuals depends on values: write np.linalg.pinv(a) @ b",
    **dict.fromkeys(("take", "take_along_axis"), "index with slices, or use fusec.kernel"),
    **dict.fromkeys(("eig", "eigvals"), "its dtype depends on values: np.linalg.eigh suits symmetric matrices"),
}
"""What to write for functions of NumPy that cannot be fused."""


def cure_for(name: str, known: Iterable[str] = FUNCTIONS) -> str:
    """What to write instead of a function that cannot be fused: its replacement, or the most similar known name."""
    instead = INSTEAD.get(name, "").format(name=name)
    return instead or did_you_mean(name, known) or "call it before or after; docs/fuse.md lists what is fused"
