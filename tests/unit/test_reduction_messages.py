"""Mistakes with reductions: every message names what the user called and a cure that fits."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import fusec
from fusec.errors import FusecError

X = np.arange(10, dtype="f4").reshape(2, 5)
READ_ONLY = np.zeros(())
READ_ONLY.flags.writeable = False
TEXTS = ("T x", "T y", "x", "a + b", "y = a", "0", "k")
PAIR = "struct P { float s; float n; }; __device__ P pair(float s) { P r; r.s = s; r.n = 1; return r; }"


def mapped(text: str, **options: str) -> fusec.ReductionKernel:
    return fusec.ReductionKernel("T x", "T y", text, "a + b", "y = a", "0", "k", **options)


def of_pairs(identity: object) -> fusec.ReductionKernel:
    reduced = "P{a.s + b.s, a.n + b.n}"
    return fusec.ReductionKernel("T x", "T y", "pair(x)", reduced, "y = a.s", identity, "k", "P", preamble=PAIR)


CASES: list[tuple[Callable[[], object], str]] = [
    (lambda: fusec.ReductionKernel(*TEXTS)(X, size=3), "axis=, keepdims=, out=, where= and stream="),
    (lambda: mapped("x * foo"), "known here: _J, _in_ind, _out_ind, x"),
    (lambda: mapped("x * i"), "known here: _J, _in_ind, _out_ind, x"),
    (lambda: mapped("pair(x)", preamble=PAIR)(X), "pass reduce_type='P'"),
    (lambda: of_pairs("0")(X), "write a value of the struct: P{s, n}"),
    (lambda: of_pairs((0, 0))(X), "write a value of the struct: P{s, n}"),
    (lambda: fusec.ReductionKernel("T x", "T y", "x", "mx(a, b)", "y = a")(X), "did you mean 'max'?"),
    (lambda: fusec.sum.source(types={"x": "float32"}, axis=1), "pass shape= with more axes"),
    (lambda: mapped("x").source("cuda", {"T": "float32"}, axis=1), "pass shape= with more axes"),
    (lambda: fusec.cummax(X, where=X > 0), "give what does not count a value without effect by np.where"),
    (lambda: fusec.fuse(lambda x: x.max())(X, where=X > 0), "where=mask, or select there: np.where(mask, x, y)"),
    (lambda: fusec.fuse(lambda x: x.sum(axis=1)).source(types={"x": "float32"}), "pass shape= with more axes"),
    (lambda: mapped("P{x, 1}", reduce_type="P"), "unknown type 'P'"),
    (lambda: mapped("P{x, 1}", reduce_type="P"), "a struct is defined in preamble=: struct P { ... };"),
    (lambda: mapped("2 * Pair{x, 1}.s"), "a struct is defined in preamble=: struct Pair { ... };"),
    (lambda: mapped("pai{x, 1}", preamble=PAIR.replace("P", "pair_t").replace(" pair(", " of(")), "unknown type 'pai'"),
    (lambda: mapped("x{x, 1}"), "unexpected '{'"),
    (lambda: mapped("x", reduce_type="P"), "a struct is defined in preamble=: struct P { ... };"),
    (lambda: fusec.sum(X, out=np.zeros((), "i4")), "kernel 'sum'"),
    (lambda: fusec.sum(X, out=np.zeros((), "i4")), "hint: pass an array of float32"),
    (lambda: fusec.max(X, axis=0, out=np.zeros(5, "i8")), "kernel 'max'"),
    (lambda: fusec.argmax(X, axis=0, out=np.zeros(5)), "kernel 'argmax'"),
    (lambda: fusec.median(X, axis=0, out=np.zeros(5, int)), "pass an array of float32, or one of complex numbers"),
    (lambda: fusec.nanargmin(1j * X), "nanargmin is not defined for dtype complex64"),
    (lambda: fusec.sum(X, where=None), "where= of 'sum' must be bool, not None"),
    (lambda: fusec.sum(X, keepdims="no"), "keepdims= of 'sum' must be True or False, not 'no'"),
    (lambda: fusec.sum(X, axis=np.array([1])), "axis must be None, an integer or a tuple of integers"),
    (lambda: fusec.max(X[:, :0], initial=1j), "1j is not a value of float32"),
    (lambda: fusec.var(X, correction=None), "correction= of 'var' must be one number, not None"),
    (lambda: fusec.vecdot(X, X[:, :1]), "5 and 1 elements"),
    (lambda: fusec.vecdot(X, X[0], axis=1), "axis 1 is out of bounds for array of dimension 1"),
    (lambda: fusec.vecdot(X, X[0], axis=0), "count the axis from the end"),
    (lambda: fusec.vecdot(X, X, axis=None), "vecdot takes one axis, not None"),
    (lambda: fusec.max(np.zeros(0)), "pass initial="),
    (lambda: fusec.softmax([]), "(0,); pass at least one element, or reduce other axes"),
    (lambda: fusec.evaluate("max(x)", {"x": np.zeros(0)}), "pass at least one element"),
    (
        lambda: fusec.ReductionKernel("T x", "T y", "x", "min(a, b)", "y = a", None)(np.zeros(0)),
        "give the kernel an identity",
    ),
    (lambda: fusec.sum(np.array(3.5), axis=0), "a zero-dimensional array has no axes: omit axis="),
    (lambda: fusec.mean_var(X, out=np.zeros(())), "'mean_var' must hold one array for each output: 2, not 1"),
    (lambda: fusec.cumsum([1.0, 2.0], out=[0.0, 0.0]), "a list or tuple stands for several"),
    (lambda: fusec.sum(X, axis=0, initial=X[0]), "initial= of 'sum' must be one number, not an array of shape"),
    (lambda: fusec.var(X, ddof=1, correction=1), "'var' got correction= and ddof=, which are two names for one thing"),
    (lambda: fusec.norm(X, ord="fro"), "2 is the root of the sum of squares ('fro' of a matrix), inf and -inf"),
    (lambda: fusec.norm(X, ord=None), "must be a real number, inf or -inf, not None"),
    (lambda: fusec.norm(X, ord=2j), "must be a real number, inf or -inf, not 2j"),
    (lambda: fusec.cumsum(X, axis="0"), "axis must be None or one integer, not '0'"),
    (lambda: fusec.logcumsumexp(X, axis=1.0), "axis must be None or one integer, not 1.0"),
    (lambda: fusec.cumulative_sum(X, axis="0", include_initial=True), "None or one integer, not '0'"),
    (lambda: fusec.mean_var(X, dof=1), "a call takes axis=, dtype=, out=, correction="),
    (
        lambda: fusec.sum(X, axes=0),
        "'sum' takes no keyword 'axes' [F201]\nhint: did you mean 'axis'? a call takes axis=, ",
    ),
    (
        lambda: fusec.sum(X, dim=0),
        "'sum' takes no keyword 'dim' [F201]\nhint: did you mean 'axis'? a call takes axis=, ",
    ),
    (lambda: fusec.sum(X, out=READ_ONLY), "output array is read-only: 'out' of kernel 'sum' [F221]"),
    (lambda: fusec.argmax(X, axis=1, out=np.zeros(3, int)), "output 'out' of kernel 'argmax' has shape (3,)"),
    (lambda: fusec.softmax(X, out=np.zeros((2, 5), "f2")), "Type is mismatched. out float16 float"),
    (lambda: fusec.cumsum(X, axis=1, out=np.broadcast_to(0.0, (2, 5))), "read-only: 'out' of kernel 'cumsum'"),
    (lambda: fusec.softmax(X, where=X > 0), "'softmax' takes no keyword 'where' [F201]\nhint: give what does not"),
]


@pytest.mark.parametrize(("mistake", "said"), CASES)
def test_a_mistake_is_told_with_its_cure(mistake: Callable[[], object], said: str) -> None:
    with pytest.raises(FusecError) as caught:
        mistake()
    assert said in str(caught.value)


def test_an_identity_that_is_a_number_is_a_value_of_the_totals() -> None:
    def kernel(identity: object, kind: str = "T") -> fusec.ReductionKernel:
        return fusec.ReductionKernel("T x", f"{kind} y", "x", "a + b", "y = a", identity, "tally")

    none = X[0, :0].astype("u1")
    for identity in (0.5, -1, 256, np.nan, -np.inf):
        for made in (kernel(identity), pickle.loads(pickle.dumps(kernel(identity)))):
            with pytest.raises(TypeError, match=rf"identity {identity!r} of 'tally' is not a value of uint8.*\n.*uint"):
                made(none)
    assert kernel("0.5")(none) == 0  # a text is converted as C converts
    assert kernel(3.0)(none) == 3
    assert kernel(0.1, "float32")(none) == np.float32(0.1)
    assert kernel(-np.inf, "float32")(none) == -np.inf
    assert np.isnan(kernel(np.nan, "float32")(none))
    assert kernel(True)(none) == 1


def test_an_output_of_another_dtype_is_what_is_wrong() -> None:
    kernels = (
        fusec.ReductionKernel(*TEXTS), fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a"),
        fusec.ElementwiseKernel("T x", "T y", "y = x"),
    )  # fmt: skip
    cure = "hint: pass an array of float32, or convert the inputs first, e.g. x.astype('float64')"
    for kernel in kernels:
        for call in (lambda given, of=kernel: of(X, out=given), lambda given, of=kernel: of(X, given)):
            with pytest.raises(TypeError, match=r"Type is mismatched\. y float64 float32 T") as caught:
                call(np.empty(X.shape, "f8"))
            assert str(caught.value).endswith(cure)


def test_numbers_may_be_arrays_without_axes() -> None:
    assert fusec.sum(X, axis=0, initial=X[0, 1]).tolist() == [6, 8, 10, 12, 14]
    assert fusec.max(X, initial=np.array(20, "f4")) == 20


def test_the_median_of_no_rows_is_empty() -> None:
    assert fusec.median(np.zeros((0, 3)), axis=1).shape == (0,)


def test_axes_and_keepdims_are_whatever_numpy_takes_as_integers() -> None:
    for axis in (1, np.int64(1), np.array(1), (np.uint8(1),), [-1]):
        assert fusec.sum(X, axis=axis).tolist() == [10, 35]
        assert fusec.argmax(X, axis=axis if isinstance(axis, (int, np.ndarray)) else 1).tolist() == [4, 4]
    for keepdims in (1, np.True_, True):
        assert (
            fusec.sum(X, axis=1, keepdims=keepdims).shape == fusec.median(X, axis=1, keepdims=keepdims).shape == (2, 1)
        )
    for error in (IndexError, ValueError):  # as NumPy's AxisError is both
        with pytest.raises(error, match="axis 2 is out of bounds for array of dimension 2"):
            fusec.sum(X, axis=2)


def test_outputs_may_be_of_wider_kinds_than_results() -> None:
    expected = {fusec.min: [0, 5], fusec.sum: [10, 35], fusec.any: [1, 1], fusec.argmax: [4, 4], fusec.median: [2, 7]}
    kinds = {fusec.argmax: ("i4", "u1"), fusec.any: ("i2", "f4"), fusec.median: ("f2", "c8"), fusec.min: ("f8", "c8")}
    for function, values in expected.items():
        for kind in kinds.get(function, ("f2", "c16")):
            out = np.zeros(2, kind)
            assert function(X, axis=1, out=out) is out
            assert out.tolist() == values


def test_variances_without_degrees_of_freedom_are_numpys() -> None:
    x = np.array([1.0, 2.0, np.nan, 4.0])
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy's of degrees of freedom
        for correction in (1, 3, 5, np.nan, np.inf):
            for ours, numpys, given in ((fusec.var, np.var, X), (fusec.nanvar, np.nanvar, x)):
                np.testing.assert_allclose(ours(given, correction=correction), numpys(given, ddof=correction), 1e-6)
                np.testing.assert_array_equal(ours(given, ddof=correction), ours(given, correction=correction))
