"""Two files make an op: its row and its definition; every language and the machine code find it there."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from fusec.base.ops import TABLE

ROOT = Path(__file__).parents[2]
ROW = '    Op("logit", 1, FLOAT, math="logarithm.logit", c="logit", python="logit"),\n'
DEFINITION = '''

def logit(x: Term) -> Term:
    """ln(x / (1 - x)), the inverse of sigmoid."""
    return log(x / (1.0 - x))
'''
USE = """
import numpy as np
import fusec

@fusec.elementwise
def odds(x):
    return logit(x)

x = np.array([0.0, 0.25, 0.5, 0.75, 1.0, 2.0])
with np.errstate(all="ignore"):
    wanted = np.log(x / (1 - x))
kernel = fusec.ElementwiseKernel("float64 x", "float64 z", "z = logit(x)")
for found in (kernel(x), odds(x), fusec.evaluate("logit(x)"), fusec.simulate(kernel)(x)):
    np.testing.assert_allclose(found, wanted, rtol=1e-15)
assert "double fusec_logit_float64(double x)" in kernel.source("cuda")
"""


def test_no_two_rows_have_a_name_in_common_and_every_definition_is_there() -> None:
    in_kernels = [name for row in TABLE.values() for name in row.c_names]
    in_python = [name for row in TABLE.values() for name in row.python.split()]
    assert len(in_kernels) == len(set(in_kernels))
    assert len(in_python) == len(set(in_python))
    for row in TABLE.values():
        for definition in filter(None, (row.math, row.integer_math, row.complex_math)):
            module, _, function = definition.partition(".")
            assert callable(getattr(import_module(f"fusec.math.{module}"), function)), f"{row.name}: {definition}"


def test_two_files_make_an_op(tmp_path: Path) -> None:
    changes = {
        "base/ops.py": lambda text: text.replace("TABLE = _table(\n", "TABLE = _table(\n" + ROW),
        "math/logarithm.py": lambda text: text + DEFINITION,
    }
    link(ROOT / "fusec", tmp_path / "fusec", set(changes))
    for name in ("grammar", "runtime"):
        (tmp_path / "fusec" / name).symlink_to(ROOT / name)
    for name, change in changes.items():
        (tmp_path / "fusec" / name).write_text(change((ROOT / "fusec" / name).read_text()))
    (tmp_path / "use.py").write_text(USE)
    variables = {**os.environ, "PYTHONPATH": str(tmp_path), "FUSEC_CACHE": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run([sys.executable, "use.py"], cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def link(folder: Path, copy: Path, changed: set[str], prefix: str = "") -> None:
    """A copy of the package that shares all files but those to be changed."""
    copy.mkdir()
    for each in folder.iterdir():
        name = f"{prefix}{each.name}"
        if any(other.startswith(f"{name}/") for other in changed):
            link(each, copy / each.name, changed, f"{name}/")
        elif name not in changed and name not in ("grammar", "runtime"):
            (copy / each.name).symlink_to(each)
