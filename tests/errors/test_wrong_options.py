"""Options of a wrong type, and names of absurd length, are errors of the catalogue, told in few words and at once."""

import time

import numpy as np
import pytest

import fusec

ELEMENTWISE = {"in_params": "T x", "out_params": "T y", "operation": "y = x"}
COMBINED = {"in_params": "T x", "out_params": "T y", "map_expr": "x", "post_map_expr": "y = a"}
SCAN = {**COMBINED, "scan_expr": "a + b"}
DOORS = {
    "ElementwiseKernel": (lambda **given: fusec.ElementwiseKernel(**{**ELEMENTWISE, **given}), (
        *ELEMENTWISE, "name", "preamble", "loop_prep", "after_loop", "options", "fp", "bounds",
    )),
    "ReductionKernel": (lambda **given: fusec.ReductionKernel(**{**COMBINED, "reduce_expr": "a + b", **given}), (
        *COMBINED, "reduce_expr", "name", "preamble", "options", "fp", "reduce_type",
    )),
    "ScanKernel": (lambda **given: fusec.ScanKernel(**{**SCAN, **given}), (
        *SCAN, "name", "preamble", "options", "fp", "reduce_type", "segments",
    )),
    "elementwise": (lambda **given: fusec.elementwise("def f(x): return x", **given), (
        "name", "fp", "names", "bounds",
    )),
    "stencil": (lambda **given: fusec.stencil("def f(a): return a[1]", **given), (
        "name", "fp", "names", "bounds", "boundary", "cval", "axes",
    )),
    "kernel": (lambda **given: fusec.kernel("def f(x):\n    for i in fusec.grid(3): x[i] = 1", **given), (
        "name", "fp", "names", "bounds", "block",
    )),
    "reduction": (lambda **given: fusec.reduction("lambda a, b: a + b", **given), (
        "name", "fp", "names", "identity", "map", "finish",
    )),
}  # fmt: skip
WRONG = [b"x", np.arange(3), object(), {"x"}]


@pytest.mark.parametrize(("door", "option"), [(door, option) for door, (_, names) in DOORS.items() for option in names])
def test_an_option_of_a_wrong_type_is_an_error_of_the_catalogue(door, option):
    for wrong in WRONG:
        with pytest.raises(fusec.FusecError):
            DOORS[door][0](**{option: wrong})


LONG = "y" * 60_000


@pytest.mark.parametrize(
    "make",
    [
        lambda: fusec.ElementwiseKernel("T x", "T z", f"z = {LONG}"),
        lambda: fusec.ElementwiseKernel("T x", "T z", f"z = {LONG}(x)"),
        lambda: fusec.ElementwiseKernel(f"{LONG} x", "T z", "z = x"),
        lambda: fusec.elementwise(f"def f(x): return {LONG}")(1.0),
        lambda: fusec.elementwise(f"def f(x): return np.{LONG}(x)")(1.0),
        lambda: fusec.evaluate(f"{LONG}(1)"),
    ],
    ids=["name", "function", "type", "Python name", "Python attribute", "evaluate"],
)
def test_a_name_of_absurd_length_is_refused_at_once_and_briefly(make):
    started = time.process_time()
    with pytest.raises(fusec.FusecError) as caught:
        make()
    assert time.process_time() - started < 1
    assert len(str(caught.value)) < 3000
