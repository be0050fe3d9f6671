"""One set of verbs for every kind of kernel: each cell of the table works, or says why it cannot and what to do."""

import copy
import inspect
import io
import pickle
import re
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import fusec
from fusec import FusecError
from fusec.cli.main import main
from fusec.dispatch.explain import Explanation
from fusec.fusion import fuse

X = np.linspace(-2, 3, 12, dtype="float32").reshape(3, 4)
HIDDEN = np.arange(12).reshape(3, 4) % 3 == 1  # for where=


@fusec.elementwise
def double(x):
    return 2 * x


@fusec.stencil
def beside(x):
    return x[-1, 0] + x[0, 1]


@fusec.kernel
def clear(x):
    for i, j in fusec.grid(x.shape):
        x[i, j] = 0


@fusec.kernel(block=2)
def in_blocks(x):
    for i in fusec.grid(2):
        x.flat[i] = 0


@fusec.reduction(identity=0)
def together(a, b):
    return a + b


@fusec.fuse
def centred(x):
    return x - x.mean()


@fusec.vectorize
def halved(x):
    return x / 2


of_text = fusec.elementwise("lambda x: 3 * x")
fused_lambda = fusec.fuse(lambda x: x + 1)
expression = fusec.NumExpr("2*x", [("x", "float32")])
with_total = fusec.NumExpr("x / sum(x)", [("x", "float32")])
element_kernel = fusec.ElementwiseKernel("T x", "T y", "y = 2 * x", "twice")
reduction_kernel = fusec.ReductionKernel("T x", "T y", "x", "a + b", "y = a", 0, "total")
scan_kernel = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0, "running")


@dataclass(frozen=True)
class Row:
    """A kind: a kernel of it, how it is made, and what its calls take."""

    kernel: Any
    make: Callable[..., Any] | None = None  # another like it, with options; None if it is there already
    options: dict[str, Any] = field(default_factory=dict)  # of calls
    changes: bool = False  # calls change their argument
    many: bool = False  # calls return a tuple
    typed: str = "x"  # what types= of source() names

    def call(self, kernel: Any = None, **options: Any) -> Any:
        """The result of a call, or what it has made of its argument."""
        x = X.copy()
        found = (self.kernel if kernel is None else kernel)(x, **self.options, **options)
        return x if self.changes else found


def made(maker: Callable[..., Any], *args: Any) -> Callable[..., Any]:
    return lambda **options: maker(*args, **options)


KINDS = {
    "ElementwiseKernel": Row(element_kernel, made(fusec.ElementwiseKernel, "T x", "T y", "y = 2 * x"), typed="T"),
    "ReductionKernel": Row(
        reduction_kernel, made(fusec.ReductionKernel, "T x", "T y", "x", "a + b", "y = a", 0), {"axis": 0}, typed="T"
    ),
    "ScanKernel": Row(
        scan_kernel, made(fusec.ScanKernel, "T x", "T y", "x", "a + b", "y = a", 0), {"axis": 0}, typed="T"
    ),
    "elementwise": Row(double, made(fusec.elementwise, double)),
    "elementwise of a text": Row(of_text, made(fusec.elementwise, "lambda x: 3 * x")),
    "stencil": Row(beside, made(fusec.stencil, beside)),
    "kernel": Row(clear, made(fusec.kernel, clear), changes=True),
    "kernel in blocks": Row(in_blocks, lambda **each: fusec.kernel(in_blocks, block=2, **each), changes=True),
    "reduction": Row(together, lambda **each: fusec.reduction("def combine(a, b): return a + b", **each), {"axis": 0}),
    "vectorize": Row(halved, made(fusec.vectorize, lambda x: x / 2)),
    "fuse": Row(centred, made(fusec.fuse, lambda x: x - x.mean())),
    "fuse of a lambda": Row(fused_lambda, made(fusec.fuse, lambda x: x + 1)),
    "NumExpr": Row(expression, made(fusec.NumExpr, "2*x", [("x", "float32")]), typed=""),
    "NumExpr with a total": Row(with_total, made(fusec.NumExpr, "x / sum(x)", [("x", "float32")]), typed=""),
    "sum": Row(fusec.sum, None, {"axis": 0}),
    "var": Row(fusec.var, None, {"axis": 0}),
    "argmax": Row(fusec.argmax, None, {"axis": 1}),
    "minmax": Row(fusec.minmax, None, {"axis": 0}, many=True),
    "cumsum": Row(fusec.cumsum, None, {"axis": 0}),
    "softmax": Row(fusec.softmax),
    "median": Row(fusec.median, None, {"axis": 0}),
}


class Refused(Exception):
    """A refusal of the command line, with the code that it shows."""


# --- the verbs -------------------------------------------------------------------------------------------------------


def equal(found: Any, wanted: Any) -> None:
    for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (found, wanted)), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def explain(row: Row) -> None:
    report = fusec.explain(row.kernel, X.copy(), **row.options)
    topics = dict(report.lines)
    assert {"kernels", "path", "plan", "machine code", "bytes moved"} <= topics.keys(), report
    assert report.launches == int(topics["kernels"]) > 0


def own_explain(row: Row) -> None:
    report = row.kernel.explain(X.copy(), **row.options)
    assert isinstance(report, Explanation)
    assert report.bytes_moved >= X.nbytes
    assert report._repr_html_()


def compile_call(row: Row) -> None:
    """Nothing is run, and what a call runs is there."""
    x = X.copy()
    assert row.kernel.compile(x, **row.options) is None
    equal(x, X)
    row.call()


def explained_with(make: Callable[[Row], dict[str, Any]]) -> Callable[[Row], None]:
    """explain takes the options of calls: the report is that of the call without them, but for the lines about them."""

    def check(row: Row) -> None:
        x, options = X.copy(), make(row)
        wanted = fusec.explain(row.kernel, x, **row.options)
        found = fusec.explain(row.kernel, x, **row.options, **options)
        assert (found.kernel, found.launches, found.bytes_moved) == (wanted.kernel, wanted.launches, wanted.bytes_moved)

    return check


def outputs_for(row: Row) -> dict[str, Any]:
    """out= of a call."""
    wanted = np.zeros(1) if row.changes else row.call()
    return {"out": tuple(map(np.empty_like, wanted)) if row.many else np.empty_like(wanted)}


def source(target: str, mark: str) -> Callable[[Row], None]:
    def shown(row: Row) -> None:
        assert mark in row.kernel.source(target, {row.typed: "float32"} if row.typed else None)

    return shown


def simulate(row: Row) -> None:
    wanted = row.call()
    x = X.copy()
    found = fusec.simulate(row.kernel)(x, **row.options)
    equal(x if row.changes else found, wanted)


def created(option: str, value: str, kept: str = "") -> Callable[[Row], None]:
    """A kernel made with an option, which it keeps; functions that are there take it in a call, or refuse it."""

    def check(row: Row) -> None:
        if row.make is None:
            row.call(**{option: value})
            raise AssertionError(f"{option}= is ignored")
        kernel = row.make(**{option: value})
        row.call(kernel)
        assert (kept or value) in (kernel.checks if kept else getattr(kernel, option))

    return check


def called(**options: Any) -> Callable[[Row], None]:
    """An option that makes no difference to host arrays."""

    def check(row: Row) -> None:
        equal(row.call(**options), row.call())

    return check


def out(row: Row) -> None:
    wanted = row.call()
    given = tuple(map(np.empty_like, wanted)) if row.many else np.empty_like(wanted)
    found = row.call(out=given)
    assert found is given or (row.many and all(map(lambda a, b: a is b, found, given)))
    equal(given, wanted)


def where(row: Row) -> None:
    """Elements left out of a sum count as zeros."""
    if row.kernel is fusec.var:
        equal(row.call(where=HIDDEN), np.var(X, axis=0, where=HIDDEN))
    else:
        equal(row.call(where=HIDDEN), row.kernel(np.where(HIDDEN, X, np.float32(0)), **row.options))


def name(row: Row) -> None:
    assert row.kernel.name
    assert isinstance(row.kernel.__name__, str)


def fp_of(row: Row) -> None:
    assert row.kernel.fp == "strict"


def doc(row: Row) -> None:
    assert row.kernel.__doc__
    assert row.kernel.__doc__ != type(row.kernel).__doc__


def shown(row: Row) -> None:
    assert repr(row.kernel)
    assert len(repr(row.kernel)) < 120


def html(row: Row) -> None:
    text = row.kernel._repr_html_()
    assert row.kernel.name in text or row.kernel.__name__ in text or "2*x" in text or "sum(x)" in text
    assert text.startswith("<b>")


def signature(row: Row) -> None:
    """Of a kernel and of its copy, which has no function behind it; those of the classes remain."""
    for kernel in (row.kernel, pickle.loads(pickle.dumps(row.kernel))):
        params = list(inspect.signature(kernel).parameters.values())
        assert params[0].kind == params[0].VAR_POSITIONAL or params[0].name == "x"
    if not inspect.isfunction(row.kernel):
        assert inspect.signature(type(row.kernel)).parameters


def again(make: Callable[[Any], Any]) -> Callable[[Row], None]:
    def check(row: Row) -> None:
        found = make(row.kernel)
        assert type(found) is type(row.kernel)
        equal(row.call(found), row.call())

    return check


def codes(row: Row) -> None:
    row.call()
    found = row.kernel.cached_codes
    assert found
    assert all("define" in text for text in found.values())


def limit(row: Row) -> None:
    """What an object holds grows with the kinds of its calls in tables that have a limit, and nowhere else."""

    def sizes() -> dict[str, int]:
        tables = getattr(row.kernel, "__dict__", {}).items()
        return {key: len(each) for key, each in tables if isinstance(each, dict | list | set)}

    def calls(extents: range) -> None:
        for extent in extents:
            row.kernel(np.ones((extent, 4), "float32"), **row.options)

    calls(range(3, 5))
    before = sizes()
    calls(range(5, 8))
    grown = {key for key, size in sizes().items() if size > before.get(key, 0)}
    assert grown == ({"_plans"} if isinstance(row.kernel, fuse.Fused) else set())  # which MAX_PLANS limits


def compiled(row: Row) -> None:
    """`fusec compile MODULE:KERNEL`, of this module or of fusec itself."""
    path = next(key for key, each in globals().items() if each is row.kernel) if row.make else ""
    place = f"{__name__}:{path}" if path else f"fusec:{row.kernel.__name__}"
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main(["compile", place, *(["--types", f"{row.typed}=float32"] if row.typed else [])])
    if status:
        raise Refused(*re.findall(r"\[(F\d+)\]", err.getvalue()))
    assert "__global__" in out.getvalue()


VERBS: dict[str, Callable[[Row], None]] = {
    "fusec.explain": explain,
    "explain": own_explain,
    "compile": compile_call,
    "explain out=": explained_with(outputs_for),
    "explain stream=": explained_with(lambda row: {"stream": None}),
    "explain block_size=": explained_with(lambda row: {"block_size": 64}),
    "source llvm": source("llvm", "define"),
    "source cuda": source("cuda", "__global__"),
    "source metal": source("metal", "kernel void"),
    "source ir": source("ir", "kernel"),
    "simulate": simulate,
    "bounds=": created("bounds", "check", "bounds"),
    "check=": created("check", "wrap", "wrap"),
    "fp=": created("fp", "contract"),
    "name=": created("name", "other"),
    "stream=": called(stream=None),
    "block_size=": called(block_size=64),
    "out=": out,
    "where=": where,
    "name": name,
    "fp": fp_of,
    "__doc__": doc,
    "repr": shown,
    "inspect.signature": signature,
    "_repr_html_": html,
    "pickle": again(lambda kernel: pickle.loads(pickle.dumps(kernel))),
    "copy": again(copy.copy),
    "deepcopy": again(copy.deepcopy),
    "cached_codes": codes,
    "limit": limit,
    "fusec compile": compiled,
}


FUSED = "fuse, fuse of a lambda"
EXPRESSIONS = "NumExpr, NumExpr with a total"
BUILT_IN = "sum, var, argmax, minmax, cumsum, softmax, median"
ALL = ", ".join(KINDS)
WITHOUT_STREAM = {"F507": EXPRESSIONS, "F282": FUSED, "F201": BUILT_IN}
WITHOUT_BLOCK_SIZE = {
    "F188": "reduction, kernel in blocks",
    "F201": f"ReductionKernel, ScanKernel, {BUILT_IN}",
    "F507": EXPRESSIONS,
    "F282": FUSED,
}
REFUSED: dict[str, dict[str, str]] = {  # by verb and code, the kinds that refuse, each with its reason
    "fusec.explain": {"F236": "median"},
    "explain": {"F236": "median"},
    "compile": {"F236": "median"},
    "explain out=": {"F188": "kernel, kernel in blocks", "F282": FUSED, "F236": "median"},
    "explain stream=": {"F236": "median", **WITHOUT_STREAM},
    "explain block_size=": {"F236": "median", **WITHOUT_BLOCK_SIZE},
    "source llvm": {"F236": "median"},
    "source cuda": {"F236": "median"},
    "source metal": {"F236": "median"},
    "source ir": {"F236": "median"},
    "simulate": {"F236": "median"},
    "cached_codes": {"F236": BUILT_IN},
    "fusec compile": {"F236": "median"},
    "bounds=": {"F507": EXPRESSIONS, "F282": FUSED, "F201": BUILT_IN},
    "check=": {"F282": FUSED, "F201": BUILT_IN},
    "fp=": {"F507": EXPRESSIONS, "F282": FUSED, "F201": BUILT_IN},
    "name=": {"F507": EXPRESSIONS, "F201": BUILT_IN},
    "stream=": WITHOUT_STREAM,
    "block_size=": WITHOUT_BLOCK_SIZE,
    "out=": {"F188": "kernel, kernel in blocks", "F282": FUSED},
    "where=": {
        "F201": "ElementwiseKernel, argmax, minmax, cumsum, softmax, median",
        "F188": "elementwise, elementwise of a text, stencil, kernel, kernel in blocks, vectorize",
        "F507": EXPRESSIONS,
        "F282": FUSED,
    },
}


def code_of(verb: str, kind: str) -> str:
    """The code that a cell is refused with; "" where it works."""
    return next((code for code, kinds in REFUSED.get(verb, {}).items() if kind in kinds.split(", ")), "")


def outcome(verb: str, kind: str) -> str:
    """The code that a cell is refused with, "" if it works. Raises whatever else it gives."""
    try:
        VERBS[verb](KINDS[kind])
    except FusecError as error:
        return error.code if error.hint else "no hint"
    except Refused as error:
        return "".join(error.args) or "no code"
    return ""


CELLS = [(verb, kind) for verb in VERBS for kind in KINDS]


@pytest.mark.parametrize(("verb", "kind"), CELLS)
@pytest.mark.sampled(5)
def test_a_verb_works_or_says_why_it_cannot(verb: str, kind: str) -> None:
    assert outcome(verb, kind) == code_of(verb, kind)


def test_built_in_functions_say_where_their_texts_are() -> None:
    with pytest.raises(FusecError, match=r"sum has no kernel of its own.*\n.*sum\.source\(types="):
        fusec.sum.cached_codes["x"]
    assert repr(fusec.sum.cached_codes) == "<no cached codes: built-in functions share theirs>"
    assert fusec.sum.source(types={"x": "float32"})


@pytest.mark.parametrize(
    ("kind", "x", "options", "path"),
    [
        ("ReductionKernel", X, {"axis": 0}, "then a native entry"),
        ("ReductionKernel", X, {"where": HIDDEN}, "Python: where= is a mask"),
        ("reduction", X[:0], {"axis": 0}, "Python: no elements"),
        ("ScanKernel", X, {"axis": 0}, "then a native entry"),
        ("sum", np.ones((2, 3, 4)), {"axis": (0, 2)}, "Python: axis= names several axes"),
        ("softmax", np.ones((2, 20_000)), {}, "Python runs the kernels in order"),
        ("fuse", X, {}, "Python runs the kernels in order"),
        ("fuse of a lambda", X, {}, "then a native entry"),
    ],
)
def test_explain_says_what_answers_calls_and_why(kind: str, x: Any, options: dict[str, Any], path: str) -> None:
    assert path in dict(fusec.explain(KINDS[kind].kernel, x, **options).lines)["path"]


def test_explain_says_which_plan_of_how_many_a_call_takes() -> None:
    kernel = fusec.ReductionKernel("T x", "T y", "x", "a + b", "y = a", 0)
    plans = [dict(fusec.explain(kernel, np.ones(n)).lines)["plan"] for n in (3, 4, 3)]
    assert plans == ["1 of 1", "2 of 2", "1 of 2"]


def test_calls_that_a_native_entry_answers_add_no_plan() -> None:
    kernel = fusec.ElementwiseKernel("T x", "T y", "y = x + 2")
    for n in (3, 3, 3, 4, 5, 6):
        kernel(np.ones(n))
    assert [dict(fusec.explain(kernel, np.ones(n)).lines)["plan"] for n in (3, 6)] == ["1 of 1", "2 of 2"]


def test_what_is_explained_changes_nothing() -> None:
    total = 0.0

    @fusec.fuse
    def noted(x: Any, y: Any) -> Any:
        nonlocal total
        y[...] = x + 1
        total = x.sum()
        return y

    y = np.zeros_like(X)
    fusec.explain(noted, X, y)
    assert (total, y.any()) == (0.0, False)
    fusec.simulate(noted)(X, y)
    assert total == fusec.sum(X)
    equal(y, X + 1)


def test_source_shows_the_last_call_with_a_mask_or_without():
    kernel = fusec.ScanKernel("T x", "T y", "x", "max(a, b)", "y = a", "-INFINITY")
    x = np.linspace(-1, 1, 40, dtype="float32")
    kernel(x, where=x > 0)
    assert "bool* where" in kernel.source("cuda")
    for _ in range(4):  # a native entry answers the last of them
        kernel(x)
    assert "where" not in kernel.source("cuda")
    kernel(x, where=x > 0)
    assert "where" in kernel.source("cuda")


def test_source_takes_a_mask():
    kernel = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0)
    shown = kernel.source("cuda", {"T": "float32"}, where=np.ones(3, bool))
    assert "where" in shown
    assert "where" not in kernel.source("cuda", {"T": "float32"}, where=None)
    kernel(np.ones(1_000_000, "float32"), where=np.ones(1_000_000, bool))
    assert kernel.source("cuda") == shown
    with pytest.raises(TypeError, match="F245"):
        kernel.source("cuda", {"T": "float32"}, where=np.ones(3))


@pytest.mark.parametrize("kernel", [fusec.sum, fusec.softmax, fusec.fuse(lambda x: x + 1)])
@pytest.mark.parametrize("types", ["float32", ["float32"], 5])
def test_types_of_functions_of_arrays_are_a_dictionary(kernel: Any, types: object) -> None:
    with pytest.raises(fusec.FusecTypeError, match=r"not a dictionary \[F227\]"):
        kernel.source(types=types)


@pytest.mark.parametrize("kind", [fusec.ReductionKernel, fusec.ScanKernel])
def test_explain_counts_arguments(kind: Any) -> None:
    kernel = kind("T x", "T y", "x", "a + b", "y = a", "0", "counted")
    for args in ((), (X,) * 3):
        with pytest.raises(fusec.FusecTypeError, match="number of arguments"):
            kernel.explain(*args)
