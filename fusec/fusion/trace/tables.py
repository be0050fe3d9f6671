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
    " moveaxis rollaxis expand_dims flip fliplr flipud ndim dot inner sort argsort reshape ravel flatten nanvar nanstd"
    " angle isclose isposinf isneginf isreal iscomplex polyval unwrap diff".split()
)
"""Functions and methods that do the same for arrays of all extents but 0 and 1."""

STATED = frozenset(
    "roll pad take take_along_axis concatenate concat stack zeros_like ones_like empty_like full_like broadcast_to"
    " broadcast_arrays squeeze rot90 diagonal atleast_1d atleast_2d atleast_3d shape size result_type can_cast"
    " iscomplexobj isrealobj repeat outer copyto fill argmin argmax cumsum cumprod nancumsum nancumprod cumulative_sum"
    " cumulative_prod histogram digitize searchsorted einsum lib.stride_tricks.sliding_window_view".split()
)
"""Those that state for which extents they do the same. All others look at extents."""

IN_SOURCE: set[str] = set()
"""Those that run NumPy's source, which asks traced arrays for their extents."""

_CURES = {
    "nonzero flatnonzero argwhere":
        "how many there are depends on values: keep the mask for np.where(mask, x, y), x.sum(where=mask), x[mask] = y",
    "unique unique_all unique_counts unique_inverse unique_values":
        "how many there are depends on values: sort, and compare neighbours: s = np.sort(x); s[1:] != s[:-1]",
    "in1d": "write np.isin(a, b)",
    "intersect1d setdiff1d setxor1d union1d":
        "how many there are depends on values: np.isin(a, b) tells for each element",
    "array2string array_repr array_str save savetxt savez savez_compressed dump dumps tobytes tofile trim_zeros polydiv"
    " roots histogram2d histogramdd":
        "return the array, and call it on the result",
    "shares_memory may_share_memory base ctypes data einsum_path": "ask before the fused function",
    "byteswap getfield setfield setflags to_device": "do it before the fused function",
    "vectorize frompyfunc": "write fusec.vectorize(function), which can be called here, or np.where(condition, a, b)",
    "apply_along_axis": "pass axis= to functions that take it, or compute with whole arrays",
    "histogram_bin_edges": "write np.linspace(x.min(), x.max(), bins + 1)",
    "min_scalar_type": "x.dtype is known",
    "poly": "multiply the factors with np.convolve",
    "polymul": "write np.convolve(a, b)",
    "polyfit": "write np.linalg.pinv(np.vander(x, n)) @ y",
    "real_if_close": "its dtype depends on values: write z.real",
    "bincount": "write np.add.at(counts, x, 1), or np.histogram(x, bins=range(n + 1), weights=w)[0]",
    "lstsq": "the shape of the residuals depends on values: write np.linalg.pinv(a) @ b",
    "eig eigvals": "its dtype depends on values: np.linalg.eigh suits symmetric matrices",
}  # fmt: skip
INSTEAD = {name: cure for names, cure in _CURES.items() for name in names.split()}
"""What to write for functions of NumPy that cannot be fused."""


def cure_for(name: str, known: Iterable[str] = FUNCTIONS) -> str:
    """What to write instead of a function that cannot be fused: its replacement, or the most similar known name."""
    return INSTEAD.get(name) or did_you_mean(name, known) or "call it before or after; docs/fuse.md lists what is fused"
