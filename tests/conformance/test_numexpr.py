"""numexpr's own test-suite, where numexpr is installed or FUSEC_NUMEXPR names the folder that has its package."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = os.environ.get("FUSEC_NUMEXPR", "")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not FOLDER and importlib.util.find_spec("numexpr") is None,
        reason="numexpr is not installed, and FUSEC_NUMEXPR names no folder that has it",
    ),
]


def test_numexprs_own_tests_pass_but_for_those_listed():
    script = Path(__file__).parent / "run_numexpr_tests.py"
    assert subprocess.call([sys.executable, str(script), FOLDER]) == 0
