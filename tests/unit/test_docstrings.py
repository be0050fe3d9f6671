"""Docstrings of public names: each has all parts, and its example runs."""

import doctest
import inspect
import re
import warnings
from types import ModuleType

import numpy as np
import pytest

import fusec
from fusec import graph
from fusec.library.documentation import EXAMPLES

NAMES = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (fusec, fusec.random)
    for name in dir(module)
    if not name.startswith("__") and not isinstance(getattr(module, name), ModuleType)
}
ERRORS = {name for name, thing in NAMES.items() if isinstance(thing, type) and issubclass(thing, Exception)}
WITHOUT_ARRAYS = ERRORS | {"fusec.barrier", "fusec.block_index", "fusec.thread_index"}


def doc_of(name: str) -> str:
    return inspect.cleandoc(NAMES[name].__doc__ or "")


def parameters(name: str) -> set[str]:
    """The parameters that users pass, as the docstring must tell them."""
    if name in ERRORS:
        return set()
    given = inspect.signature(NAMES[name]).parameters.values()
    further = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {each.name for each in given if each.kind not in further and not each.name.startswith("_")}


@pytest.mark.parametrize("name", NAMES)
def test_a_docstring_has_all_parts(name: str) -> None:
    doc = doc_of(name)
    first = doc.partition("\n\n")[0]
    assert first.rstrip().endswith("."), "a sentence comes first"
    told = set(re.findall(r"\w+", doc.partition(">>>")[0]))
    assert parameters(name) <= told, f"{parameters(name) - told} are not told"
    assert ">>> " in doc, "an example"
    if name not in ERRORS:
        assert re.search(r"\bRaises\b|\bNothing is raised\b", doc), "errors"
    if name not in WITHOUT_ARRAYS:
        assert re.search(r"\bshapes?\b", doc), "shapes"
        assert re.search(r"\b(dtypes?|float32|int64|uint32|float64)\b", doc), "dtypes"


@pytest.mark.parametrize(
    ("name", "told", "untold"),
    [
        ("fusec.vecdot", "axis: an integer;", "None for all"),
        ("fusec.cumulative_sum", "only if x has one dimension", "None for all"),
        ("fusec.cumulative_prod", "with include_initial, the axis has one element more", "axis=None"),
        ("fusec.layer_norm", "The shape of the result is that of x.", "axis=None"),
        ("fusec.minmax", "out: a tuple of two arrays", "out: the array"),
        ("fusec.mean_var", "out: a tuple of two arrays", "out: the array"),
    ],
)
def test_a_docstring_tells_what_the_function_takes(name: str, told: str, untold: str) -> None:
    assert told in doc_of(name)
    assert untold not in doc_of(name)


BUILT_IN = {name for name in NAMES if name.removeprefix("fusec.") in EXAMPLES}


def test_the_table_of_examples_has_the_built_in_functions() -> None:
    assert len(BUILT_IN) == len(EXAMPLES)


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(NAMES.keys() - BUILT_IN, id="kernels"),
        pytest.param(BUILT_IN, id="built-in functions", marks=pytest.mark.slow),  # each compiles a kernel
    ],
)
def test_examples_of_docstrings_run(names: set[str]) -> None:
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    told: list[str] = []
    with warnings.catch_warnings():
        for name in sorted(names):
            test = parser.get_doctest(doc_of(name), {"fusec": fusec, "np": np}, name, None, 0)
            runner.run(test, out=told.append)
    assert runner.tries >= len(names)
    assert not told, "\n".join(told)


FOR_LIBRARIES = {"built", "compiler", "functions", "of", "operand"}  # of graphs, for what compiles them
OF_GRAPHS = {
    f"{owner.__name__}.{name}": getattr(owner, name)
    for owner in (graph.Graph, graph.GraphValue, graph.Extent)
    for name in dir(owner)
    if not name.startswith("_") and name not in FOR_LIBRARIES
}


def test_examples_of_graphs_run() -> None:
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    told: list[str] = []
    public = {"graph": graph, **{name: getattr(graph, name) for name in graph.__all__}, **OF_GRAPHS}
    for name, thing in public.items():
        doc = inspect.getdoc(thing) or ""
        assert doc, name
        assert ">>> " in doc or isinstance(thing, property), f"{name} has no example"
        runner.run(parser.get_doctest(doc, {"fusec": fusec, "np": np}, name, None, 0), out=told.append)
    assert not told, "\n".join(told)


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_tools_find_the_text_and_the_parameters_of_built_in_functions(name: str) -> None:
    assert "def " in inspect.getsource(NAMES[name])
    assert "name" not in inspect.signature(NAMES[name]).parameters
