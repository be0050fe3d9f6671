"""Runs CuPy's own tests of ElementwiseKernel, raw arrays and cupy.fuse against fusec, over NumPy arrays.

``python tests/conformance/run_cupy_tests.py PATH`` with PATH a checkout of the public repository cupy/cupy. Left out:
textures, which a CPU has not, and the items that need more than 8 GiB and test CuPy's own reductions.
"""

import os
import subprocess
import sys
from pathlib import Path

FILES = ("test_userkernel.py", "test_carray.py")
FUSION = "example array ufunc routines reduction indexing misc".split()
FILES += tuple(f"fusion_tests/test_{name}.py" for name in FUSION)
LEFT_OUT = "not Texture and not 32BitBoundary"


def main(checkout: str, *options: str) -> int:
    """The exit status of pytest."""
    folder = Path(checkout) / "tests" / "cupy_tests" / "core_tests"
    missing = [name for name in FILES if not (folder / name).exists()]
    if missing:
        print(f"{folder} has no {', '.join(missing)}: is {checkout} a checkout of cupy?", file=sys.stderr)
        return 2
    here = Path(__file__).parent
    path = os.pathsep.join([str(here / "shim"), str(here.parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest", "--rootdir", str(folder)]
    command += ["-c", os.devnull, "--import-mode=importlib", "-W", "ignore", "-k", LEFT_OUT, *options]
    return subprocess.call([*command, *(str(folder / name) for name in FILES)], env={**os.environ, "PYTHONPATH": path})


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    raise SystemExit(main(*sys.argv[1:]))
