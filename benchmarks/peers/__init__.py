"""The peers, by the name they have on the command line and in the tables."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Protocol

from workloads import Arrays, Workload

Prepared = tuple[Callable[[], object], Callable[[], Arrays]]


class Peer(Protocol):
    """A library under test."""

    version: str

    def prepare(self, work: Workload, operands: Arrays) -> Prepared | None:
        """What is timed, and a function that gives the results of the last call as NumPy arrays.

        None where the library cannot do this work. Inputs are in the library's own form before the clock starts.
        """


PEERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "fusec": ("fusec_peer", {"out": False}, "ElementwiseKernel object; allocates its results"),
    "fusec-out": ("fusec_peer", {"out": True}, "the same, results given"),
    "fusec-before": ("fusec_peer", {"out": False}, "an earlier version of fusec, by --before"),
    "numpy": ("numpy_peer", {}, "the expression; SciPy's erf; call_add is np.add with out="),
    "scipy": ("scipy_peer", {}, "ndimage.correlate; one thread"),
    "numexpr": ("numexpr_peer", {}, "evaluate with out=; float32 constants passed as operands"),
    "numba": ("numba_peer", {"fastmath": False}, "explicit prange loops (plain loops in group call); results given"),
    "numba-fast": ("numba_peer", {"fastmath": True}, "the same with fastmath=True"),
    "jax": ("jax_peer", {}, "jit, block_until_ready; allocates its results"),
    "torch": ("torch_peer", {"compiled": False}, "eager; allocates its results"),
    "torch.compile": ("torch_peer", {"compiled": True}, "inductor, dynamic=False; allocates its results"),
    "drjit": ("drjit_peer", {}, "LLVM backend, traced anew each call, eval and sync; allocates its results"),
    "blosc2": ("blosc2_peer", {}, "lazyexpr over NumPy arrays, computed to a NumPy array"),
}


def load(name: str, threads: int) -> Peer:
    """Import a peer's library and make it use that many threads. ImportError if it is not installed."""
    module, options, _ = PEERS[name]
    peer: Peer = importlib.import_module(f"peers.{module}").Library(threads=threads, **options)
    return peer
