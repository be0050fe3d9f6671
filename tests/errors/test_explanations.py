"""The examples that `fusec explain` gives: what is called wrong raises that error, what is called right does not."""

import importlib
import pkgutil

import numpy as np
import pytest

import fusec
from fusec import errors
from fusec.errors.base import CATALOGUE, FusecError
from fusec.errors.examples import EXAMPLES

for module in pkgutil.iter_modules(errors.__path__):
    importlib.import_module(f"fusec.errors.{module.name}")

MARKED = {
    code: [line.strip() for line in text.splitlines() if line.startswith("    ")]
    for code, text in ({code: error.about for code, error in CATALOGUE.items()} | EXAMPLES).items()
    if "  # wrong" in text
}


@pytest.mark.parametrize("code", MARKED)
def test_the_wrong_line_raises_and_the_right_ones_do_not(code):
    known = ("ElementwiseKernel", "elementwise", "fuse", "reduction", "stencil")
    names = {name: getattr(fusec, name) for name in known}
    names |= {"np": np, "out": np.empty(3)}
    outcomes = set()
    for line in MARKED[code]:
        kind = "wrong" if "  # wrong" in line else "right"
        outcomes.add(kind)
        if kind == "right":
            exec(line, names)
        else:
            with pytest.raises(FusecError) as caught:
                exec(line, names)
            assert caught.value.error.code == code
    assert outcomes == {"wrong", "right"}


def test_the_commonest_errors_of_calls_have_examples():
    assert {"F200", "F202", "F204", "F205", "F206", "F212", "F213", "F215", "F219", "F220", "F226"} <= MARKED.keys()


def test_most_errors_in_kernel_texts_have_examples():
    language = {code for code in CATALOGUE if code.startswith("F1")}
    assert language - MARKED.keys() <= {"F110", "F111"}, "texts beyond the bounds are too long to show"
