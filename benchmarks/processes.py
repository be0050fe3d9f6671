"""Starting peers: a worker process for each, and fresh processes for the first call."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BEFORE = "BENCHMARK_BEFORE"  # names the checkout of the peer fusec-before


def environment(name: str, threads: int, home: str) -> dict[str, str]:
    """The variables of a peer: that many threads everywhere, every compilation cache under `home`, its own fusec.

    Calls of fusec wait for the compiler, except where first calls are measured.
    Python's bytecode is no such cache: installed packages bring theirs, so all children share one folder of it.
    """
    count = str(threads)
    names = ("OMP", "MKL", "OPENBLAS", "NUMEXPR", "NUMEXPR_MAX", "NUMBA", "FUSEC", "BLOSC")
    variables = {f"{name}_NUM_THREADS".replace("MAX_NUM", "MAX"): count for name in names}
    caches = {
        "HOME": home,
        "XDG_CACHE_HOME": home,
        "FUSEC_CACHE_DIR": f"{home}/fusec",
        "FUSEC_TIERS": "0",
        "NUMBA_CACHE_DIR": f"{home}/numba",
        "TORCHINDUCTOR_CACHE_DIR": f"{home}/inductor",
        "JAX_COMPILATION_CACHE_DIR": f"{home}/jax",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    bytecode = {"PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "benchmark-bytecode")}
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    checkout = os.environ[BEFORE] if name == "fusec-before" else str(HERE.parent)
    return {**kept, **variables, **caches, **bytecode, "PYTHONPATH": f"{HERE}{os.pathsep}{checkout}"}


class Worker:
    """A running peer. A peer that dies or hangs answers {"failed": reason} from then on."""

    def __init__(self, name: str, threads: int, home: str, command: Sequence[str] = ()) -> None:
        """command: what runs it, with its arguments; worker.py without."""
        own = [str(HERE / "worker.py"), name, str(threads)]
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
        self.process = subprocess.Popen(
            [sys.executable, *(command or own)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, env=environment(name, threads, home),
        )  # fmt: skip
        self.hello = self._receive(180)

    def ask(self, timeout: float = 300, **request: Any) -> dict[str, Any]:
        """Send a request and wait for its answer, at most `timeout` seconds."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except (OSError, ValueError):
            return {"failed": "the process is gone"}
        return self._receive(timeout)

    def _receive(self, timeout: float) -> dict[str, Any]:
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(timeout):
                self.close()
                return {"failed": f"no answer within {timeout:.0f} s"}
        line = self.process.stdout.readline()
        if not line:
            self.log.seek(0)
            tail = self.log.read().decode(errors="replace").strip().splitlines()[-1:]
            return {"failed": f"died: {' '.join(tail)}"[:300]}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.log):
            if stream is not None:
                stream.close()


def first_call(name: str, threads: int, home: str) -> dict[str, Any]:
    """Import and first-call times of a peer in a fresh process whose caches lie in `home`."""
    program = [sys.executable, str(HERE / "first_call.py"), name, str(threads)]
    variables = environment(name, threads, home) | {"FUSEC_TIERS": os.environ.get("FUSEC_TIERS", "1")}
    run = subprocess.run(program, env=variables, capture_output=True, text=True, timeout=300, check=False)
    if run.returncode:
        return {"failed": " ".join(run.stderr.strip().splitlines()[-1:])[:300]}
    report: dict[str, Any] = json.loads(run.stdout)
    return report
