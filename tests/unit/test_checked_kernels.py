"""Checked kernels find the first index outside of an array, and touch nothing there."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import fusec
from fusec import FusecError, FusecIndexError, FusecRuntimeError, passes
from fusec.base.dtypes import INT32
from fusec.compiler.lowering import lower_program
from fusec.frontends.c.definition import Definition
from fusec.passes.bounds import check_bounds


@fusec.kernel(bounds="check")
def shift(x, out, k):
    for i in fusec.grid(out.shape[0]):
        assert k < 100, "k is small"
        found = 0.0
        if x[i] > 5:
            found = x[i + k]
        j = i
        while j < out.size - k and x[j + k] > 1:  # k > 0: stays inside
            j += 1
        out[i] = found + j


def guarded(count):
    """An array inside a larger one, so that a stray write would be seen."""
    memory = np.full(count + 200, -7.0)
    return memory, memory[100 : 100 + count]


def test_inside_the_arrays_checks_change_nothing():
    x = np.arange(10.0)
    plain = fusec.kernel(shift, bounds="trust")
    outputs = [np.zeros(10) for _ in range(3)]
    for kernel, out in zip((shift, plain, fusec.simulate(shift)), outputs, strict=True):
        kernel(x, out, 0)
    np.testing.assert_array_equal(outputs[0], outputs[1])
    np.testing.assert_array_equal(outputs[0], outputs[2])


@pytest.mark.parametrize(
    ("k", "index", "line"),
    [
        (1, "index 10 of 'x' is outside its 10 elements", "x[i + k]|while j < out.size"),  # by elements side by side
        (-3, "index -3 of 'x'", "while j < out.size"),
    ],
)
def test_the_first_index_outside_is_named_with_its_line(k, index, line):
    for run in (shift, fusec.simulate(shift), pickle.loads(pickle.dumps(shift))):
        with pytest.raises(FusecIndexError, match=index) as caught:
            run(np.arange(10.0), np.zeros(10), k)
        assert any(each in str(caught.value) for each in line.split("|"))
        assert "in element" in str(caught.value)
        assert isinstance(caught.value, IndexError)


def test_assertions_hold_in_checked_kernels_only():
    with pytest.raises(FusecRuntimeError, match="assertion does not hold"):
        shift(np.zeros(3), np.zeros(3), 100)

    @fusec.elementwise(bounds="check")
    def positive(x):
        assert x > 0
        return np.sqrt(x)

    np.testing.assert_array_equal(positive(np.array([4.0, 9])), [2, 3])
    with pytest.raises(FusecRuntimeError, match="in element 2"):
        positive(np.array([4.0, 9, -1, 4]))
    unchecked = fusec.elementwise(positive, bounds="trust")
    assert np.isnan(unchecked(np.array([-1.0])))


def test_nothing_outside_is_written():
    @fusec.kernel(bounds="check")
    def scatter(x, places):
        for i in fusec.grid(places.size):
            fusec.atomic_add(x, places[i], 1)
            x[places[i]] = 5

    memory, x = guarded(4)
    for place in (-1, 4, 1 << 40, -(1 << 62)):
        with pytest.raises(FusecIndexError, match=f"index {place} "):
            scatter(x, np.array([0, place, 3]))
    assert (memory[:100] == -7).all()
    assert (memory[104:] == -7).all()
    assert x[[0, 3]].tolist() == [5, 5]


def test_axes_and_views_are_checked_by_themselves():
    @fusec.kernel(bounds="check")
    def pick(a, out, row, column):
        for i in fusec.grid(1):
            out[i] = a[row, column]

    a = np.arange(60.0).reshape(6, 10)[::2, ::3]
    out = np.zeros(1)
    pick(a, out, 2, 3)
    assert out[0] == a[2, 3]
    with pytest.raises(FusecIndexError, match=r"index 4 along axis 1 of 'a' is outside its 4 elements"):
        pick(a, out, 0, 4)
    with pytest.raises(FusecIndexError, match=r"index 3 along axis 0 of 'a' is outside its 3 elements"):
        pick(a, out, 3, 0)


def test_local_arrays_are_checked():
    @fusec.elementwise(bounds="check")
    def nth(x, n):
        kept = fusec.local((2, 2), np.float64)
        kept[0, n] = x
        return kept[0, n]

    np.testing.assert_array_equal(nth(np.arange(3.0), np.array([0, 1, 3])), np.arange(3.0))
    with pytest.raises(FusecIndexError, match="index 4 of 'local' is outside its 4 elements"):
        nth(np.arange(3.0), np.array([0, 1, 4]))


@pytest.mark.parametrize(
    "body",
    [
        "for (int k = 0; k < 3; k += x[k]) z += x[j + k];",
        "int k = 0; do { z += x[j + k]; ++k; } while (k < 3 && x[j + k] >= 0);",
        "int k = 0; while (x[j + k] > 0 && k < 3) { if (++k == 2) continue; z += x[j + k - 1]; }",
        "z = j > 5 ? x[j] : j < 0 ? 0 : x[j]; int t[2]; t[j & 1] = x[2]; z += t[j & 1];",
        "T v = 0; atomicAdd(&x[j], v); z = x[j];",
    ],
)
def test_kernel_strings_are_checked(body):
    params = "raw _non_const T x, int32 j" if "atomic" in body else "raw T x, int32 j"
    x = np.ones(8, "int32")
    kernels = [fusec.ElementwiseKernel(params, "T z", "z = 0; " + body, bounds=how) for how in ("check", "trust")]
    kernels.append(fusec.simulate(kernels[0]))
    places = np.array([0, 4, 2], "int32")
    results = [kernel(x, places) for kernel in kernels]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    for kernel in (kernels[0], kernels[2]):
        with pytest.raises(FusecIndexError, match="of 'x' is outside its 8 elements"):
            kernel(x, np.array([0, 9], "int32"))


def test_stencils_stay_inside_whatever_the_border():
    image = np.arange(12.0).reshape(3, 4)
    for boundary in ("constant", "nearest", "reflect", "mirror", "wrap", "skip"):
        far = fusec.stencil("def f(a): return a[-5, 0] + a[0, 7] * 2", boundary=boundary, bounds="check")
        plain = fusec.stencil("def f(a): return a[-5, 0] + a[0, 7] * 2", boundary=boundary)
        np.testing.assert_array_equal(far(image), plain(image))


def test_the_variable_checks_all_kernels(monkeypatch):
    text = "def f(x, y):\n    for i in fusec.grid(y.size):\n        y[i] = x[i]"
    monkeypatch.setenv("FUSEC_CHECK", "bounds")
    kernel, trusting = fusec.kernel(text), fusec.kernel(text, bounds="trust")
    assert "fusec_fault" in kernel.source("cuda", {"x": "float32", "y": "float32"})
    assert "fusec_fault" not in trusting.source("cuda", {"x": "float32", "y": "float32"})
    assert "fusec_fault" in fusec.ElementwiseKernel("raw T x, int32 j", "T z", "z = x[j]").source(
        "metal", {"T": "float32"}
    )
    with pytest.raises(FusecIndexError, match="index 2"):
        kernel(np.zeros(2), np.zeros(3))
    monkeypatch.setenv("FUSEC_CHECK", "all")
    with pytest.raises(FusecError, match=r"(?s)FUSEC_CHECK is 'all', but must be 'bounds', 'wrap' or 'bounds,wrap'"):
        fusec.kernel(text)
    with pytest.raises(FusecError, match="bounds='no' is not known"):
        fusec.kernel(text, bounds="no")


def test_moved_pointers_cannot_be_checked():
    kernel = fusec.ElementwiseKernel("raw T x", "T z", "const T* p = &x[0]; z = p[i]", bounds="check")
    with pytest.raises(FusecError, match="moves pointers"):
        kernel(np.zeros(3), np.zeros(3))


@pytest.mark.parametrize(
    "body",
    [
        "int k = 0; do { if (k == 2) { ++k; continue; } z += x[j + k]; ++k; } while (k < 3 && x[j + k] >= 0);",
        "for (int k = 0; k < 3; k += x[k]) { int t[3]; t[k % 3] = x[j + x[k]]; z += t[0]; if (z > 9) break; }",
    ],
)
def test_checked_programs_obey_the_rules_of_the_ir(body):
    definition = Definition("raw T x, int32 j", "T z", "z = 0; " + body)
    types = {"x": INT32, "j": INT32, "z": INT32}
    program, sites = check_bounds(lower_program(definition, types, {"x": 1}, frozenset()))
    passes.run(program, check=True)
    assert len(sites) >= 2
    assert {site.array for site in sites} >= {"x"}


def test_public_names_are_those_of_modules_only_if_they_are_modules():
    modules = {path.stem for path in Path(fusec.__file__).parent.iterdir()}
    public = {*fusec.__all__, *" ".join(fusec.HOMES.values()).split()}
    assert modules & public == {"graph", "random", "xp"}
    assert {name for name in public if getattr(fusec, name, None) is None} == set()
