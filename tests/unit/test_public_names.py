"""What users see of the package and of kernels: names, and nothing that fusec keeps for itself."""

import functools
import re

import numpy as np
import pytest

import fusec
from fusec import FusecTypeError
from fusec.base.public import VERBS
from fusec.kernels.explain import explain


@fusec.elementwise
def twice(x):
    return 2 * x


@fusec.stencil
def beside(x):
    return x[-1] + x[1]


@fusec.kernel
def clear(x):
    for i in fusec.grid(x.shape[0]):
        x[i] = 0


@fusec.reduction
def together(a, b):
    return a + b


@fusec.fuse
def spread(x):
    return x - x.mean()


KINDS = {
    "ElementwiseKernel": fusec.ElementwiseKernel("T x", "T y", "y = 2 * x", "twice"),
    "ReductionKernel": fusec.ReductionKernel("T x", "T y", "x", "a + b", "y = a", 0, "together"),
    "ScanKernel": fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0, "together"),
    "elementwise": twice,
    "stencil": beside,
    "kernel": clear,
    "reduction": together,
    "fuse": spread,
    "NumExpr": fusec.NumExpr("2*x"),
    "vectorize": fusec.vectorize(lambda x: 2 * x),
}


def shown(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("__")}


@pytest.mark.parametrize("kind", KINDS)
def test_dir_of_a_kernel_shows_what_users_do_with_it(kind: str) -> None:
    kernel = KINDS[kind]
    kernel(np.ones(3))
    assert shown(kernel) <= VERBS
    assert all(hasattr(kernel, name) for name in dir(kernel))
    assert kind == "vectorize" or {"explain", "source", "run"} & shown(kernel)


def test_every_verb_is_one_of_some_kind() -> None:
    assert set().union(*map(shown, KINDS.values())) == VERBS


@pytest.mark.parametrize("module", [fusec, fusec.graph, fusec.random])
def test_dir_of_a_module_shows_public_names(module: object) -> None:
    assert set(module.__all__) <= shown(module)
    for name in shown(module):
        of = getattr(getattr(module, name), "__module__", None)
        assert name in ("graph", "random", "xp") or of.startswith("fusec"), name
    assert not shown(module) & {"HOMES", "TYPE_CHECKING", "locks", "usual", "np", "log", "base", "errors"}


@pytest.mark.parametrize("kind", KINDS)
def test_explain_reports_calls_of_every_kind(kind: str) -> None:
    report = explain(KINDS[kind], np.ones(15))
    topics = [topic for topic, _ in report.lines]
    assert report.launches == 1
    assert dict(report.lines)["kernels"] == "1"
    assert {"bytes moved", "machine code"} <= set(topics)
    again = dict(explain(KINDS[kind], np.ones(15)).lines)
    assert again["machine code"] == "in memory, from an earlier call of this kind"


def test_explain_says_where_code_came_from_and_how_long_it_took() -> None:
    def report() -> dict[str, str]:
        kernel = fusec.ElementwiseKernel("T x", "T y", "y = 3 * x - 41", "fresh")
        return dict(explain(kernel, np.ones(4)).lines)

    assert re.fullmatch(r"fresh (compiled|from the disk cache) in [\d.]+ ms", report()["machine code"])
    assert re.fullmatch(r"fresh from memory in [\d.]+ ms", report()["machine code"])


def test_explain_says_which_path_a_call_takes_and_why() -> None:
    kernel = KINDS["ElementwiseKernel"]
    assert "then a native entry" in dict(explain(kernel, np.ones(4)).lines)["path"]
    assert dict(explain(kernel, np.ones(0)).lines)["path"] == "Python: no elements"
    checked = fusec.elementwise(twice, bounds="check")
    assert dict(explain(checked, np.ones(4)).lines)["path"].startswith("Python: the kernel checks calls")


@pytest.mark.parametrize("kind", ["ReductionKernel", "reduction"])
def test_explain_counts_the_kernels_that_combine_totals(kind: str) -> None:
    report = explain(KINDS[kind], np.ones(1 << 20))
    assert (report.launches, dict(report.lines)["kernels"]) == (2, "2")


@pytest.mark.parametrize(("elements", "launches"), [(1 << 20, 1), (1 << 25, 2)])
def test_explain_counts_the_kernels_that_combine_totals_of_fused_functions(elements: int, launches: int) -> None:
    report = explain(fusec.fuse(lambda x: (2 * x).sum()), np.empty(elements, np.int8))
    assert (report.launches, dict(report.lines)["kernels"]) == (launches, str(launches))


def test_explain_counts_in_the_singular_and_lists_numbers_in_the_order_of_the_signature() -> None:
    clip = fusec.ElementwiseKernel("raw T table, T low, T x, T high", "T z", "z = min(max(x, low), high) + table[0]")
    lines = dict(explain(clip, np.ones(1), 2.0, np.ones(1), 1.0).lines)
    assert lines["by value"] == "low, high"
    assert lines["iteration space"] == "(1,), 1 element"
    assert lines["'table'"] == "raw, 1 axis, C-contiguous"


def test_explain_of_an_expression_is_headed_by_its_names() -> None:
    expression = fusec.NumExpr("a * b", [("a", np.float32), ("b", np.float32)])
    assert explain(expression, *2 * [np.ones(3, np.float32)]).kernel == "evaluate(a, b) -> (out)"


@pytest.mark.parametrize("thing", [3, len, np.sum, fusec.ElementwiseKernel])
def test_explain_refuses_what_is_no_kernel(thing: object) -> None:
    with pytest.raises(FusecTypeError, match="F239"):
        explain(thing, np.ones(3))


def test_verbs_of_evaluate_take_its_text() -> None:
    x = np.ones(3)
    assert explain(fusec.evaluate, "x + 1", {"x": x}).launches == 1
    np.testing.assert_array_equal(fusec.simulate(fusec.evaluate)("x + 1"), x + 1)
    for call in (fusec.simulate(fusec.evaluate), functools.partial(explain, fusec.evaluate)):
        with pytest.raises(fusec.FusecError, match="must specify expression as a string"):
            call()
