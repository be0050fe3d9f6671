"""Runs numexpr's own test-suite with evaluate, validate, re_evaluate and NumExpr replaced by fusec's.

``python tests/conformance/run_numexpr_tests.py [FOLDER] [-- pytest's options]`` with FOLDER the one that has the
package numexpr, for this version of Python, if `import numexpr` alone does not find it. numexpr_internals.toml lists
what does not pass, with reasons.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def main(folder: str = "", *options: str) -> int:
    """The exit status of pytest."""
    here = Path(__file__).parent
    with tempfile.TemporaryDirectory() as alone:
        package = Path(folder, "numexpr") if folder else None
        if package is not None and not package.is_dir():
            print(f"{folder} has no package numexpr", file=sys.stderr)
            return 2
        if package is not None:
            Path(alone, "numexpr").symlink_to(package.resolve())  # and nothing else of that folder
        elif (found := importlib.util.find_spec("numexpr")) is not None and found.origin:
            package = Path(found.origin).parent
        else:
            print("numexpr is not installed; name the folder that has it", file=sys.stderr)
            return 2
        path = os.pathsep.join([str(here / "shim"), str(here.parents[1]), alone, os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "numexpr_by_fusec"]
        command += ["--noconftest", "-c", os.devnull, "--import-mode=importlib", "-W", "ignore", *options]
        command += [str(package / "tests" / "test_numexpr.py")]
        return subprocess.call(command, env={**os.environ, "PYTHONPATH": path, "FUSEC_TIERS": "0"})


if __name__ == "__main__":
    given = sys.argv[1:]
    at = given.index("--") if "--" in given else len(given)
    raise SystemExit(main(*(given[:at] or [""]), *given[at + 1 :]))
