"""What traced arrays look up when something is asked of them; the modules that define it fill these tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""NumPy's functions that are no ufuncs, by name."""

METHODS: dict[str, Callable[..., Any]] = {}
"""Methods of arrays, and __array_ufunc__."""
