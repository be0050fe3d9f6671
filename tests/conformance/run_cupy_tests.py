"""Runs CuPy's own tests of its kernels, raw arrays, fuse and vectorize against fusec, over NumPy arrays.

``python tests/conformance/run_cupy_tests.py PATH`` with PATH a checkout of the public repository cupy/cupy. What is
left out is listed in `not_portable.toml`. The tests of fuse compile some thousand kernels, which takes ten minutes.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

FILES = ("test_userkernel.py", "test_carray.py", "test_reduction.py")
FUSION = "example array ufunc routines reduction indexing misc".split()
FILES += tuple(f"fusion_tests/test_{name}.py" for name in FUSION)
FILES += ("../functional_tests/test_vectorize.py",)


def main(checkout: str, *options: str) -> int:
    """The exit status of pytest."""
    folder = Path(checkout) / "tests" / "cupy_tests" / "core_tests"
    missing = [name for name in FILES if not (folder / name).exists()]
    if missing:
        print(f"{folder} has no {', '.join(missing)}: is {checkout} a checkout of cupy?", file=sys.stderr)
        return 2
    here = Path(__file__).parent
    left_out = " and ".join(f"not {name}" for name in tomllib.loads((here / "not_portable.toml").read_text())["tests"])
    places = [here / "shim", here.parents[1], Path(checkout) / "tests", os.environ.get("PYTHONPATH", "")]
    path = os.pathsep.join(map(str, places))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest", "--rootdir", str(folder)]
    command += ["-c", os.devnull, "--import-mode=importlib", "-W", "ignore", "-k", left_out, *options]
    return subprocess.call(
        [*command, *(str(folder / name) for name in FILES)], env={**os.environ, "PYTHONPATH": path, "FUSEC_TIERS": "0"}
    )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    raise SystemExit(main(*sys.argv[1:]))
