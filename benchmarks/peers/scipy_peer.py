"""scipy.ndimage, for the stencils."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from scipy import ndimage
from stencils import STENCILS, WEIGHTS
from workloads import Arrays, Workload

from peers import Prepared


class Library:
    """SciPy, which runs on one thread."""

    def __init__(self, threads: int) -> None:
        self.version = scipy.__version__

    def prepare(self, work: Workload, operands: Arrays) -> Prepared | None:
        """See peers.Peer."""
        if work.name not in STENCILS:
            return None
        (x,), wide = operands, work.name == "edges_bytes"
        weights = np.array(WEIGHTS)
        last: list[Any] = [None]

        def call() -> None:
            found = ndimage.correlate(x, weights, output=np.int32 if wide else x.dtype)
            last[0] = np.clip(abs(found), 0, 255).astype(np.uint8) if wide else found

        return call, lambda: (last[0],)
