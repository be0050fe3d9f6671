"""Every mistake in a kernel text is reported at the user's own place, in the same words each time.

A case is a .txt file of sections (``## operation`` and so on) with the .err file of its message beside it; run with
FUSEC_WRITE_GOLDENS=1 to write the .err files anew.
"""

import os
import re
from pathlib import Path

import pytest

from fusec.base.dtypes import BY_NAME
from fusec.errors import FusecError
from fusec.frontends.c.definition import Definition
from fusec.frontends.c.lower import lower, parse

CASES = sorted((Path(__file__).parent / "cases").glob("*.txt"))


def sections(path):
    parts = re.split(r"^## (\w+)\n", path.read_text(), flags=re.MULTILINE)
    return {name: text.removesuffix("\n") for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def message(path):
    given = sections(path)
    types = dict(pair.split("=") for pair in given.pop("types", "T=float32").split())
    scalars = frozenset(given.pop("scalars", "").split())
    given["options"] = tuple(given.get("options", "").split())
    with pytest.raises(FusecError) as caught:  # noqa: PT012 - reading or lowering may refuse
        kernel = parse(
            Definition(
                given.pop("in_params", "T x"), given.pop("out_params", "T z"), given.pop("operation", "z = x"), **given
            )
        )
        bound = {param.name: param.dtype or BY_NAME[types[param.type_name]] for param in kernel.params}
        lower(kernel, bound, ndims={}, scalars=scalars)
    return str(caught.value), caught.value


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_mistake_is_reported_in_the_users_text(path):
    text, error = message(path)
    golden = path.with_suffix(".err")
    if os.environ.get("FUSEC_WRITE_GOLDENS"):
        golden.write_text(text + "\n")
    assert text + "\n" == golden.read_text()
    assert re.fullmatch(r"F1\d\d", error.error.code)
    assert error.span is not None or "option" in text
    assert "hint:" in text or "^" in text


def test_there_are_forty_mistakes():
    assert len(CASES) >= 40
