"""The end of an interpreter, and several in a process: what cannot work says so."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]

CALLS = """
import atexit, builtins, gc
import numpy as np
import fusec

x = np.ones(3, "float32")
twice = fusec.ElementwiseKernel("float32 x", "float32 z", "z = x * 2", "twice")
thrice = fusec.ElementwiseKernel("float32 x", "float32 z", "z = x * 3", "thrice")
"""

AT_EXIT = (
    CALLS
    + """
def late():
    print(thrice(x), fusec.sum(x), fusec.cumsum(x), fusec.evaluate("x + 1", {"x": x}), flush=True)

atexit.register(late)
twice(x)
"""
)

AT_THE_END = (
    CALLS
    + """
@fusec.elementwise
def half(x):
    return x / 2

@fusec.fuse
def less(x):
    return x - 1

class Late:
    def __del__(self):
        given, error, done = self.given, self.error, self.done
        for name, call in self.calls.items():
            try:
                done.append((name, call(given).tolist()))
            except error as told:
                done.append((name, str(told)))
        self.show(*map(repr, done), sep="\\n", flush=True)

late = Late()
sum, cumsum, evaluate, softmax = fusec.sum, fusec.cumsum, fusec.evaluate, fusec.softmax
late.given, late.error, late.show, late.done = x, fusec.FusecRuntimeError, print, []
late.calls = {
    "used": twice, "new": thrice, "half": half, "less": less, "sum": sum, "cumsum": cumsum, "softmax": softmax,
    "evaluate": lambda x, evaluate=evaluate: evaluate("x + 1", {"x": x}),
    "lazy": lambda x, fusec=fusec: fusec.median(x),
}
for _ in range(5):
    twice(x)
gc.disable()  # CPython 3.12.1 may begin a collection inside its last one when finalizers run long, and crashes
builtins.late = late
"""
)

SECOND = """
import sys
sys.path[:0] = {path!r}
import fusec
try:
    fusec.ElementwiseKernel
except fusec.FusecRuntimeError as error:
    print(error, flush=True)
"""


def run(folder: Path, script: str) -> str:
    file, environment = folder / "script.py", os.environ | {"FUSEC_CACHE": "0", "PYTHONPATH": str(ROOT)}
    file.write_text(script)
    done = subprocess.run(
        [sys.executable, file], capture_output=True, text=True, timeout=120, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_kernels_work_at_exit(tmp_path: Path) -> None:
    assert run(tmp_path, AT_EXIT) == "[3. 3. 3.] 3.0 [1. 2. 3.] [2. 2. 2.]\n"


def test_when_python_takes_itself_apart_calls_work_or_say_why_not(tmp_path: Path) -> None:
    lines = run(tmp_path, AT_THE_END).splitlines()
    assert len(lines) == 9
    assert lines[0] == "('used', [2.0, 2.0, 2.0])"
    for line in lines[1:]:
        assert "[F790]" in line or line.endswith(("])", "0)")), line


@pytest.mark.skipif(importlib.util.find_spec("_xxsubinterpreters") is None, reason="needs subinterpreters")
def test_a_second_interpreter_is_told_that_numpy_serves_one(tmp_path: Path) -> None:
    second = SECOND.format(path=sys.path)
    script = f"{CALLS}\nimport _xxsubinterpreters as several\nseveral.run_string(several.create(), {second!r})"
    found = run(tmp_path, script)
    assert "[F791]" in found or (not found and np.lib.NumpyVersion(np.__version__) < "2.3.0")  # which served several
