"""Wrong keywords and arguments of decorators, constructors and methods: the error names what is meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusec

X = np.ones((3, 4))
SAME = fusec.elementwise("def f(a): return a")
FILL = fusec.kernel("def g(a):\n    for i in fusec.grid(a.shape[0]):\n        a[i] = 1")
COPY = fusec.ElementwiseKernel("T x", "T y", "y = x", "copy")
TOTAL = fusec.ReductionKernel("T x", "T y", "x", "a + b", "y = a", 0, "total")
RUNNING = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0, "running")


def plain(a: Any) -> Any:
    """What is decorated."""
    return a


@pytest.mark.parametrize(
    ("call", "message", "hint"),
    [
        (lambda: fusec.elementwise(plain, nam="q"), "'elementwise' takes no keyword 'nam'", "did you mean 'name'?"),
        (lambda: fusec.elementwise(nam="q"), "'elementwise' takes no keyword 'nam'", "did you mean 'name'?"),
        (lambda: fusec.stencil("...", boundry="wrap"), "'stencil' takes no", "did you mean 'boundary'? a call takes "),
        (lambda: fusec.kernel(plain, blok=4), "'kernel' takes no keyword 'blok'", "did you mean 'block'?"),
        (lambda: fusec.reduction(plain, identiy=0), "'reduction' takes no", "did you mean 'identity'? a call takes "),
        (
            lambda: fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", reverse=True),
            "'ScanKernel' takes no keyword 'reverse'",
            "a call takes identity=, name=, ",
        ),
        (lambda: fusec.ElementwiseKernel("T x", "T y", "y = x", optons=()), "'optons'", "did you mean 'options'?"),
        (
            lambda: fusec.simulate(SAME, pythn=True),
            "'simulate' takes no keyword",
            "did you mean 'python'? a call takes",
        ),
        (lambda: fusec.vectorize(plain, otype=["f"]), "'vectorize' takes no keyword 'otype'", "did you mean 'otypes'?"),
        (lambda: SAME.source("cuda", typs={}), "'source' takes no keyword 'typs'", "did you mean 'types'?"),
        (lambda: COPY.explain(X, sise=1), "takes no keyword 'sise'", "did you mean 'size'?"),
        (lambda: fusec.simulate(COPY)(X, sise=1), "'copy' takes no keyword 'sise'", "did you mean 'size'?"),
        (lambda: fusec.sum(X, axsi=1), "kernel 'sum' takes no keyword 'axsi'", "did you mean 'axis'? a call takes "),
        (
            lambda: COPY(X, otu=X.copy()),
            "kernel 'copy' takes no keyword 'otu'",
            "did you mean 'out'? a call takes size=",
        ),
        (lambda: TOTAL(X, axsi=1), "kernel 'total' takes no keyword 'axsi'", "did you mean 'axis'? a call takes axis="),
        (lambda: TOTAL.explain(X, axsi=1), "kernel 'total' takes no keyword 'axsi'", "did you mean 'axis'?"),
        (lambda: RUNNING(X, revers=1), "kernel 'running' takes no keyword 'revers'", "did you mean 'reverse'?"),
        (lambda: RUNNING.explain(X, revers=1), "kernel 'running' takes no keyword 'revers'", "did you mean 'reverse'?"),
        (lambda: fusec.explain(fusec.sum, X, axsi=1), "kernel 'sum' takes no keyword 'axsi'", "did you mean 'axis'?"),
    ],
)
def test_keyword_that_is_meant(call: Callable[[], object], message: str, hint: str) -> None:
    with pytest.raises(fusec.FusecTypeError) as raised:
        call()
    assert raised.value.code == "F201"
    assert message in str(raised.value)
    assert raised.value.hint.startswith(hint)


SOURCES = (
    COPY, TOTAL, RUNNING, SAME, FILL, fusec.stencil("def f(a): return a[1]"), fusec.vectorize(lambda a: a + 1),
    fusec.reduction("def f(a, b): return a + b"), fusec.fuse(lambda a: a + 1), fusec.NumExpr("a + 1"), fusec.sum,
    fusec.softmax, fusec.cumsum,
)  # fmt: skip


@pytest.mark.parametrize("kernel", SOURCES, ids=lambda kernel: type(kernel).__name__)
def test_misspelt_keyword_of_source(kernel: Any) -> None:
    for wrong, meant in (("tpyes", "types"), ("scalrs", "scalars")):
        with pytest.raises(fusec.FusecTypeError, match=f"'source' takes no keyword '{wrong}'") as raised:
            kernel.source("cuda", **{wrong: {"a": "float32"}})
        assert raised.value.hint.startswith(f"did you mean '{meant}'? a call takes target=, types=")


FLAGGED = {
    "keepdims": (TOTAL, fusec.reduction("def f(a, b): return a + b", identity=0), fusec.sum, fusec.var),
    "reverse": (RUNNING,),
}


@pytest.mark.parametrize("given", [X, [1], "yes", None, 1.0], ids=repr)
@pytest.mark.parametrize(("keyword", "kernel"), [(each, kernel) for each in FLAGGED for kernel in FLAGGED[each]])
def test_flags_that_are_neither_true_nor_false(keyword: str, kernel: Any, given: object) -> None:
    for _ in range(3):
        kernel(X, axis=0, **{keyword: np.True_})  # so that a native entry answers
    for call in (kernel, kernel.explain, fusec.simulate(kernel)):
        with pytest.raises(fusec.FusecTypeError, match=f"{keyword}= of '[a-z]+' must be True or False, not") as raised:
            call(X, axis=0, **{keyword: given})
        assert (raised.value.code, raised.value.hint[: len(keyword)]) == ("F257", keyword)


@pytest.mark.parametrize("kernel", [SAME, FILL])
@pytest.mark.parametrize(("keyword", "given"), [("dtype", "f4"), ("foo", None), ("blok_size", 3)])
def test_unknown_keyword_before_its_value(kernel: Callable[..., object], keyword: str, given: object) -> None:
    with pytest.raises(fusec.FusecTypeError, match=f"does not take the argument '{keyword}'") as raised:
        kernel(X[0].copy(), **{keyword: given})
    assert raised.value.code == "F188"
    assert ("out=" in raised.value.hint) == (kernel is SAME)


@pytest.mark.parametrize(
    ("call", "code", "message"),
    [
        (lambda: fusec.sum(), "F187", "sum() is missing the argument 'x'"),
        (lambda: fusec.explain(), "F187", "explain() is missing the argument 'kernel'"),
        (lambda: fusec.ElementwiseKernel(), "F187", "ElementwiseKernel() is missing the argument 'in_params'"),
        (lambda: fusec.sum(X, x=X), "F188", "sum() does not take 'x' twice"),
        (lambda: fusec.sum(X, 0, None, None, 1), "F188", "sum() does not take 5 arguments"),
    ],
)
def test_arguments_that_fit_no_parameter(call: Callable[[], object], code: str, message: str) -> None:
    with pytest.raises(fusec.FusecTypeError) as raised:
        call()
    assert raised.value.code == code
    assert message in str(raised.value)


def test_type_errors_of_a_body_stay() -> None:
    def wrong(x: Any) -> Any:
        return x + len(3)  # type: ignore[arg-type]

    with pytest.raises(TypeError, match="has no len") as raised:
        fusec.fuse(wrong)(X)
    assert not isinstance(raised.value, fusec.FusecError)


def test_types_that_are_no_dictionary() -> None:
    with pytest.raises(fusec.FusecTypeError) as raised:
        SAME.source("cuda", ["float32"])
    assert str(raised.value) == 'types=[\'float32\']: not a dictionary [F227]\nhint: pass types={"a": "float32"}'


def test_arguments_are_counted_without_the_kernel_whose_method_is_called() -> None:
    with pytest.raises(fusec.FusecTypeError, match=r"source\(\) does not take 5 arguments"):
        COPY.source("cuda", {}, {}, 1, 2)
