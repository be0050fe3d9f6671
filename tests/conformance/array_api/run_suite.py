"""Runs data-apis/array-api-tests on fusec.xp: ``python -m tests.conformance.array_api.run_suite PATH [options]``.

PATH: a checkout of the suite with its submodule; the default is FUSEC_ARRAY_API_TESTS. All options that are not listed
below go to pytest, and so do files of the suite, such as array_api_tests/test_linalg.py.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = Path(__file__).parents[3]
PACKAGE = "tests.conformance.array_api"


def main(*args: str) -> int:
    """The exit status of pytest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", nargs="?", default=os.environ.get("FUSEC_ARRAY_API_TESTS"))
    parser.add_argument("--version", default="2025.12", help="of the standard")
    parser.add_argument("--examples", type=int, default=20, help="of each test")
    parser.add_argument("--device", help="where arrays are, such as cuda:0")
    parser.add_argument("--compiles", action="store_true", help="run twice, and count what each run compiles")
    given, options = parser.parse_known_args(args)
    if given.path is None or not (Path(given.path) / "array_api_tests").is_dir():
        print(f"{given.path} is no checkout of data-apis/array-api-tests", file=sys.stderr)
        return 2
    tests = [] if any(each.startswith("array_api_tests") for each in options) else ["array_api_tests"]
    command = [sys.executable, "-m", "pytest", *tests, "-q", "-p", "no:cacheprovider", "--disable-deadline"]
    command += [f"--max-examples={given.examples}", *options]
    settings = {"ARRAY_API_TESTS_MODULE": "fusec.xp", "ARRAY_API_TESTS_VERSION": given.version}
    if given.device:
        settings |= {"ARRAY_API_TESTS_MODULE": f"{PACKAGE}.placed", "ARRAY_API_TESTS_DEVICE": given.device}
    with tempfile.TemporaryDirectory() as folder:  # examples of one run are not tried first in another
        settings |= {"HYPOTHESIS_STORAGE_DIRECTORY": folder, "PYTHONPATH": path_with(ROOT)}
        expected = Path(folder) / "expected_failures.txt"
        expected.write_text(expected_failures(given.version, given.device))
        command.append(f"--xfails-file={expected}")
        run = _twice if given.compiles else subprocess.call
        return run(command, cwd=given.path, env={**os.environ, **settings})


def _twice(command: list[str], cwd: str, env: dict[str, str]) -> int:
    """Run the suite twice with the same examples, and print how many kernels each run adds to the disk cache."""
    before, status = 0, 0
    command += ["--hypothesis-seed=0", "-p", f"{PACKAGE}.same_examples"]
    with tempfile.TemporaryDirectory() as cache:
        env |= {"FUSEC_CACHE_DIR": cache, "FUSEC_TIERS": "0"}
        for run in ("first", "second"):
            status |= subprocess.call(command, cwd=cwd, env=env)
            after = len([*Path(cache).glob("kernel/*")])
            print(f"{after - before} kernels compiled in the {run} run", flush=True)
            before = after
    return status


def expected_failures(version: str, device: str | None = None) -> str:
    """The tests that may fail, for any version and for this one, and on devices."""
    files = [HERE / "expected_failures.txt", HERE / f"expected_failures_{version}.txt"]
    files += [HERE / "expected_failures_on_devices.txt"] if device else []
    return "".join(each.read_text() for each in files if each.exists())


def path_with(folder: Path) -> str:
    """PYTHONPATH with one more folder in front."""
    return os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
