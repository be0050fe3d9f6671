"""Evaluating several lazy arrays at once, and looking at what is recorded of them."""

from contextlib import suppress
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import fusec
import fusec.xp as xp
from fusec.dispatch.explain import Explanation
from fusec.xp import sharing
from fusec.xp import tape as tapes


@pytest.fixture
def evaluated(monkeypatch):
    """The states whose plans run, in order."""
    for each in [*sharing.WRITTEN]:  # writes that other tests left, the oldest of which might be computed here
        with suppress(fusec.FusecError):
            each.evaluate()
    found = []
    evaluate = tapes.Tape._evaluate
    monkeypatch.setattr(tapes.Tape, "_evaluate", lambda self, node: found.append(node) or evaluate(self, node))
    return found


def test_arrays_of_several_tapes_are_computed_in_one_plan(evaluated):
    a, b, c = (xp.asarray(np.arange(5.0) + each) for each in range(3))
    x, y, z = a * 2, b + 1, xp.sum(c)
    assert len({id(each._tape) for each in (x, y, z)}) == 3
    found = xp.compute(x, y, z, 4)
    assert len(evaluated) == 1
    assert all(one is other for one, other in zip(found, (x, y, z), strict=False))
    assert [np.asarray(each).tolist() for each in found] == [[0, 2, 4, 6, 8], [2, 3, 4, 5, 6], 20, 4]
    assert xp.compute(*found)[0] is x
    assert len(evaluated) == 1  # values are remembered
    assert xp.compute() == ()


def test_pending_writes_to_what_is_computed_are_done(evaluated):
    own = np.zeros(3)
    x = xp.asarray(own)
    x[1:] = 5
    xp.compute(x, x + 1)
    assert own.tolist() == [0, 5, 5]
    assert len(evaluated) == 1


def test_very_long_tapes_are_computed_apart(evaluated, monkeypatch):
    monkeypatch.setattr("fusec.xp.looking.MOST_STEPS", 10)
    pending = []
    for start in range(4):
        x = xp.asarray(np.full(3, float(start)))
        for _ in range(6):
            x = x + 1
        pending.append(x)
    assert [float(each[0]) for each in xp.compute(*pending)] == [6, 7, 8, 9]
    assert len(evaluated) == 4


def test_explain_reports_kernels_and_bytes_and_computes_nothing(evaluated):
    x = xp.asarray(np.arange(1000.0))
    y = xp.exp(x) * x
    z = (y - xp.mean(y)) / 2
    report = xp.explain(z)
    assert not evaluated
    assert z._tape is not None
    topics = [topic for topic, _ in report.lines]
    assert report.kernels >= 2
    assert report.least_bytes == 8000 + 2 * 8000  # x is read, y and z are in use
    assert report.bytes_moved > report.least_bytes
    assert f"{report.least_bytes:,}" in dict(report.lines)["least possible"]
    assert topics.count("kernel 2") > 1, "why it is not part of the first"
    z.compute()
    assert len(evaluated) == 1


def test_explain_is_that_of_a_fused_function():
    def centred(x, y):
        return (x - x.mean(0)) @ y

    both = np.ones((40, 30)), np.ones((30, 40))
    report, other = xp.explain(centred(*map(xp.asarray, both))), fusec.fuse(centred).explain(*both)
    assert report.lines == other.lines
    assert report.least_bytes == other.least_bytes == 8 * (40 * 30 + 30 * 40 + 40 * 40)
    assert "library call" in dict(report.lines)


def test_explain_of_values_and_of_writes(evaluated):
    x = xp.asarray(np.zeros(100))
    assert xp.explain(x, 3).kernels == 0
    x[:50] = 1
    report = xp.explain(x)
    assert (report.kernels, report.bytes_moved, report.least_bytes) == (1, 400, 400)
    assert not evaluated
    assert float(x.sum()) == 50


def test_a_report_is_drawn_with_a_box_for_each_kernel():
    x = xp.asarray(np.arange(1000.0))
    y = xp.exp(-x) * x
    report = xp.explain((y - xp.mean(y)) / 2, y @ y)
    root = ET.fromstring(report.svg())
    space = "{http://www.w3.org/2000/svg}"
    assert root.tag == f"{space}svg"
    steps = report.kernels + sum(topic == "library call" for topic, _ in report.lines)
    assert len(root.findall(f"{space}rect")) == steps
    assert len(root.findall(f"{space}path")) == steps - 1
    texts = " ".join("".join(root.itertext()).split())
    assert "not fused with the kernel before" in texts
    assert report._repr_svg_() == report.svg()
    assert ET.fromstring(Explanation("a < b", (("types", "x & y"),), 0).svg())[0].text == "a < b"


def test_lists_of_lazy_arrays_are_computed_as_they_are():
    x = xp.asarray([1.0, 2.0])
    (first, (second,)), third, fourth = xp.compute([x + 1, (x[:1] * 2,)], x - 1, [1, 2])
    assert all(each._tape is None for each in (first, second, third))
    assert [np.asarray(each).tolist() for each in (first, second, third, fourth)] == [[2, 3], [2], [0, 1], [1, 2]]
    assert xp.explain([x + 1, x - 1]).kernels == 1


def test_pending_writes_are_pending():
    before = xp.memory_stats().pending
    x = xp.asarray(np.zeros(100))
    x += 1
    assert xp.memory_stats().pending == before + 1
    x.compute()
    assert xp.memory_stats().pending == before


def test_names_and_devices_that_there_are_not():
    for name, hint in (
        ("summ", "'sum'"),
        ("busday_count", "call numpy.busday_count: where it takes arrays, pass np.asarray(x)"),
        ("qqqq", "dir(fusec.xp)"),
    ):
        with pytest.raises(AttributeError) as caught:
            getattr(xp, name)
        assert hint in caught.value.hint
    with pytest.raises(ValueError, match=r"(?s)no device 'gpu' \[F770\].*xp.zeros\(3.*pass 'cpu'"):
        xp.zeros(3, device="gpu")


def test_numbers_above_all_floats_name_the_largest_one():
    for dtype in ("float32", "float64"):
        with pytest.raises(OverflowError) as caught:
            (xp.ones(3, dtype=dtype) + 10**400).compute()
        assert caught.value.hint == "pass a number up to 1.8e308, or math.inf"


def spectrum(x, module=xp):
    """Functions of the namespace, also of its chapters, constants, and arrays that the function makes."""
    y = module.exp(-x) * module.ones(x.shape) + module.asarray([1.0, 2.0, 3.0])
    return module.sum(y * y), module.linalg.vector_norm(y), module.fft.fft(y).real + module.pi, module.concat([y, x])


def test_functions_of_the_namespace_are_numpys_in_fused_functions():
    x, fused = np.arange(3.0), fusec.fuse(spectrum)
    expected = spectrum(x, np)
    for args in ((x,), (x, xp), (xp.asarray(x),), (x, np)):
        for found, wanted in zip(fused(*args), expected, strict=True):
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-15)
    assert "exp" in str(fused.source("cuda", xp.asarray(x)))
    assert fusec.fuse(lambda x: (xp, x))(x)[0] is xp
    with pytest.raises(AttributeError, match="qqqq"):
        fusec.fuse(lambda x: xp.qqqq(x))(x)
