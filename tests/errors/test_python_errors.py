"""Every mistake in a function written in Python is explained at its place in the user's file, always in the same words.

A case is a module that makes one mistake, with the .err file of its message beside it; run with
FUSEC_WRITE_GOLDENS=1 to write the .err files anew.
"""

import os
import re
import runpy
import sys
from pathlib import Path

import pytest

from fusec.errors import FusecError
from fusec.frontends.python import syntax_errors

ROOT = Path(__file__).parents[2]
CASES = sorted((Path(__file__).parent / "python").glob("*.py"))
NEWER = {"type_alias", "type_parameter"}  # Python 3.12's


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_mistake_is_reported_in_the_users_file(path, monkeypatch):
    if path.stem in NEWER and sys.version_info < (3, 12):
        pytest.skip("this Python does not read it")
    monkeypatch.chdir(ROOT)
    with pytest.raises(FusecError) as caught:
        runpy.run_path(str(path))
    text = str(caught.value)
    golden = path.with_suffix(".err")
    if os.environ.get("FUSEC_WRITE_GOLDENS"):
        golden.write_text(text + "\n")
    assert text + "\n" == golden.read_text()
    assert "hint:" in text
    span = caught.value.span
    if caught.value.error.code < "F187" and span is not None and "<text>" not in span.file.name:
        assert span.file.name == str(path.relative_to(ROOT))
        assert span.file.line(span.line) == path.read_text().split("\n")[span.line - 1]


def test_every_construct_that_only_python_has_is_a_case():
    texts = "".join(path.read_text() for path in CASES[0].parent.glob("*.err"))
    named = {what for what, _ in syntax_errors.REFUSALS}
    assert named == {what for what in named if f"{what} not part of the Python subset" in texts}
    assert {"Try", "Lambda", "Match"} <= syntax_errors.BY_CLASS.keys()
    assert not re.search(r"not part of the Python subset \[F170\]\nhint", texts), "each shows its place"
