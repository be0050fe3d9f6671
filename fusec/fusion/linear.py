"""Linear algebra in fused functions: LAPACK computes between kernels."""

from __future__ import annotations

import numpy as np

from fusec.fusion.libraries import LibraryFunction
from fusec.fusion.tables import FUNCTIONS

_RAISE = {"inv": 1, "solve": 2, "cholesky": 1, "qr": 1, "svd": 1, "svdvals": 1, "eigh": 1, "eigvalsh": 1, "pinv": 1}
_ALWAYS = {"det": 1, "slogdet": 1}

FUNCTIONS.update(
    {
        f"linalg.{name}": LibraryFunction(
            getattr(np.linalg, name), f"np.linalg.{name}", operands, ("a", "b")[:operands], name in _RAISE
        )
        for name, operands in {**_RAISE, **_ALWAYS}.items()
    }
)
