"""One file makes a kind of kernels: calls, overlapping memory, texts, reports and the interpreter find its row."""

import numpy as np
import pytest

import fusec
from fusec.dispatch.interpret import interpreted
from fusec.dispatch.shown import Showing
from fusec.dispatch.spec import CallOptions
from tests.support.differences import differences

X = np.random.default_rng(5).normal(size=(40, 30)).astype(np.float32)


@pytest.mark.parametrize("x", [X, X.T, X[::-1, ::3], X.astype(np.float64)[4:5], X[:, :0]])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.sampled(5)
def test_calls_of_a_new_kind_compute_what_numpy_does(x: np.ndarray, axis: int) -> None:
    kernel, wanted = differences(), np.diff(x, axis=axis)
    for _ in range(4):  # the first makes a plan, later ones take the fast path
        (found,) = kernel.run((x,), None, CallOptions(axis))
        assert np.asarray(found).tobytes() == wanted.tobytes()
    (shown,) = interpreted(kernel, (x,), None, CallOptions(axis))
    assert np.asarray(shown).tobytes() == wanted.tobytes()


def test_repeated_calls_of_a_new_kind_have_a_native_entry() -> None:
    kernel = differences()
    for _ in range(3):
        kernel.run((X,), None, CallOptions(0))
    (quick,) = kernel.quick.values()
    assert not hasattr(quick, "__code__")
    assert quick(X).tobytes() == np.diff(X, axis=0).tobytes()
    assert quick(X[:, ::2]).tobytes() == np.diff(X[:, ::2], axis=0).tobytes()  # nothing it knows


def test_outputs_of_a_new_kind_may_lie_where_inputs_do() -> None:
    kernel, x = differences(), X.copy()
    (found,) = kernel.run((x,), x[:-1], CallOptions(0))
    assert found.tobytes() == np.diff(X, axis=0).tobytes()
    with pytest.raises(fusec.errors.FusecError, match="shape"):
        kernel.run((x,), x, CallOptions(0))


def test_texts_and_reports_of_a_new_kind_are_those_of_every_other() -> None:
    kernel = differences()
    asked = Showing("cuda", {"T": "float32"}, shape=(3, 4), axis=1)
    assert "differences(" in kernel.shown(asked).text("cuda")
    assert "= x - before;" in kernel.shown(asked).text("cuda")
    assert "kernel differences(" in kernel.shown(asked).text("ir")
    report = kernel.explained((X,), CallOptions(1))
    assert report.launches == 1
    assert report.bytes_moved == 4 * (40 * 30 + 40 * 29)
    assert "differences of neighbours" in str(report)
