"""The tables that traced arrays consult; the modules that define the operations fill them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fusec.base.diagnostics import did_you_mean

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""NumPy's functions that are no ufuncs, by name."""

METHODS: dict[str, Callable[..., Any]] = {}
"""Methods of arrays, __array_ufunc__ and __array_namespace__."""

INSTEAD: dict[str, str] = {
    **dict.fromkeys(
        ("cumsum", "cumprod", "cumulative_sum", "cumulative_prod"),
        "call fusec.{name} before or after the fused function",
    ),
    **dict.fromkeys(("select", "piecewise", "choose"), "nest xp.where(condition, a, b)"),
    **dict.fromkeys(("isin", "in1d"), "compare with each value: (x == a) | (x == b)"),
    "einsum": "write a @ b, np.tensordot(a, b, axes) or (a * b).sum(axis)",
    "bincount": "its size depends on values: np.histogram(x, bins=range(n + 1)) counts the integers below n",
    "lstsq": "the shape of the residuals depends on values: write np.linalg.pinv(a) @ b",
    "gradient": "subtract slices: (x[2:] - x[:-2]) / 2",
    **dict.fromkeys(("take", "take_along_axis"), "index with slices, or use fusec.kernel"),
    "pad": "use fusec.stencil, which has borders, or pad before",
    "isclose": "write abs(a - b) <= atol + rtol * abs(b)",
    "allclose": "write (abs(a - b) <= atol + rtol * abs(b)).all()",
    "array_equal": "write (a == b).all()",
    "trapezoid": "write ((y[1:] + y[:-1]) * dx / 2).sum()",
    "tile": "let it broadcast, or call it after",
    **dict.fromkeys(("eig", "eigvals"), "its dtype depends on values: np.linalg.eigh suits symmetric matrices"),
    "linspace": "make it before, and pass it as an argument",
}
"""What to write for functions of NumPy that cannot be fused."""


def cure_for(name: str, known: Iterable[str] = FUNCTIONS) -> str:
    """What to write instead of a function that cannot be fused: its replacement, or the most similar known name."""
    instead = INSTEAD.get(name, "").format(name=name)
    return instead or did_you_mean(name, known) or "call it before or after; docs/fuse.md lists what is fused"
