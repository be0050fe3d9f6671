"""Runs a client's own tests on fusec.xp: ``python -m tests.conformance.array_api.run_client NAME [MODULE ...]``.

Options behind the modules go to pytest.
"""

import os
import subprocess
import sys
from itertools import takewhile

from tests.conformance.array_api.run_suite import ROOT, path_with

PLUGINS = "tests.conformance.array_api"
DEPRECATIONS = "filterwarnings=error:.*removed in v1:DeprecationWarning"
CLIENTS: dict[str, tuple[list[str], list[str]]] = {
    "extra": (
        ["-p", f"{PLUGINS}.extra_plugin", "-k", "fusec", "-o", DEPRECATIONS],
        ["array_api_extra.tests.main"],
    ),
    "scipy": (
        ["--noconftest", "-p", "scipy.conftest", "-p", f"{PLUGINS}.scipy_plugin", "-m", "array_api_backends"],
        [f"scipy.{name}" for name in "special stats fft cluster optimize spatial signal".split()],
    ),
    "sklearn": (["-p", f"{PLUGINS}.sklearn_plugin", "-k", "fusec"], ["sklearn"]),
    "xarray": (["-p", f"{PLUGINS}.xarray_plugin", "-k", "fusec"], ["xarray.tests.test_duck_array_wrapping"]),
}
"""By name: options of pytest, and the modules that have the tests."""


def main(*args: str) -> int:
    """The exit status of pytest."""
    if not args or args[0] not in CLIENTS:
        print(f"name one of {', '.join(CLIENTS)}", file=sys.stderr)
        return 2
    options, modules = CLIENTS[args[0]]
    wanted = [*takewhile(lambda each: each[0] != "-", args[1:])]
    options = [*options, *args[1 + len(wanted) :]]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, *options]
    settings = {"SCIPY_ARRAY_API": "1", "PYTHONPATH": path_with(ROOT)}
    return subprocess.call([*command, "--pyargs", *(wanted or modules)], env={**os.environ, **settings})


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
