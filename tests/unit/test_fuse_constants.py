"""Constants among the arguments: one trace for each, and repeated calls compare them by identity."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fusec
from fusec.fusion.fuse import MAX_PLANS, Fused
from fusec.fusion.quick_arguments import QuickArguments

X = np.arange(6.0) / 4


def a_module(scale: float) -> ModuleType:
    made: Any = ModuleType("settings")
    made.scale, made.double, made.add = scale, lambda x: x * 2, np.add
    return made


def of_namespace(xp: Any, x: Any) -> Any:
    return xp.sqrt(x) + xp.add(x, 1)


def of_keyword(x: Any, *, xp: Any = np) -> Any:
    return xp.sqrt(x) + 1


def of_default(x: Any, xp: Any = np, pair: Any = (2.0, (np.add, None))) -> Any:
    return pair[1][0](xp.sqrt(x), pair[0])


def of_function(function: Any, x: Any) -> Any:
    return function(x) + 1


def of_functions(x: Any, functions: Any) -> Any:
    return sum((each(x) for each in functions), x)


def of_dtype(x: Any, dtype: Any) -> Any:
    return x.astype(dtype) * 2


def of_choice(x: Any, choice: Any) -> Any:
    return x * 2 if choice in ("double", None) else x * 3 if choice else x


def own(x: Any) -> Any:
    return np.sqrt(x) * 3


POSITIONAL = [
    (of_namespace, (np, X)), (of_namespace, (fusec.xp, X)), (of_function, (np.sqrt, X)), (of_function, (np.sum, X)),
    (of_dtype, (X, np.float32)), (of_dtype, (X, int)), (of_dtype, (X, np.dtype("i2"))), (of_choice, (X, "double")),
    (of_choice, (X, None)), (of_choice, (X, True)), (of_choice, (X, b"")), (of_default, (X,)), (of_default, (X, np)),
]  # fmt: skip
CALLS: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
    *((function, args, {}) for function, args in POSITIONAL),
    (of_keyword, (X,), {}), (of_keyword, (X,), {"xp": np}), (of_keyword, (X,), {"xp": fusec.xp}),
    (of_functions, (X, (np.sqrt, np.square)), {}), (of_functions, (X, [own, np.sqrt]), {}),
    (of_function, (own, X), {}), (of_choice, (X,), {"choice": (None, "a", np.float32, fusec.xp)}),
]  # fmt: skip


def same(mine: Any, wanted: Any) -> None:
    np.testing.assert_array_equal(mine, wanted, strict=True)


def counted(monkeypatch: pytest.MonkeyPatch, name: str) -> list[Any]:
    """The calls from now on of a method that fused functions have."""
    found: list[Any] = []
    method = getattr(Fused, name)
    monkeypatch.setattr(Fused, name, lambda *args: [found.append(args), method(*args)][1])
    return found


@pytest.mark.parametrize(("function", "args", "options"), CALLS)
def test_repeated_calls_are_neither_traced_nor_read_argument_by_argument(
    function: Callable[..., Any], args: Any, options: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fused = fusec.fuse(function)
    wanted = np.asarray(function(*args, **options))
    traces, long = counted(monkeypatch, "_made"), counted(monkeypatch, "_general")
    for _ in range(12):
        same(np.asarray(fused(*args, **options)), wanted)
    assert (len(traces), len(long)) == (1, 1)


@pytest.mark.parametrize(("function", "args"), POSITIONAL)
def test_constants_by_position_are_told_apart_by_identity_alone(
    function: Callable[..., Any], args: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fused: Any = fusec.fuse(function)
    wanted = fused(*args)
    monkeypatch.setattr(QuickArguments, "take", None)
    same(fused(*args), wanted)


def test_defaults_cost_no_reads() -> None:
    fused: Any = fusec.fuse(of_default)
    fused(X)
    ((plan,),) = fused._plans.values()
    assert plan.names is not None


def test_defaults_that_are_replaced_are_seen() -> None:
    def function(x: Any, xp: Any = np, pair: Any = (2.0, [3.0])) -> Any:
        return xp.sqrt(x) * pair[0] + pair[1][0]

    fused: Any = fusec.fuse(function)
    for _ in range(3):
        same(fused(X), np.sqrt(X) * 2 + 3)
    items: Any = function.__defaults__[1][1]  # type: ignore[index]
    items[0] = 4.0
    same(fused(X), np.sqrt(X) * 2 + 4)
    items.append(5.0)
    same(fused(X), np.sqrt(X) * 2 + 4)
    function.__defaults__ = (fusec.xp, (1.0, [0.0]))
    same(fused(X), np.sqrt(X))


def test_a_namespace_that_changes_between_calls_is_traced_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy: Any = ModuleType("cupy")  # whose functions a trace finds in NumPy
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    mine: Any = ModuleType("mine")
    mine.sqrt, mine.add = np.square, np.subtract
    fused: Any = fusec.fuse(of_namespace)
    traces = counted(monkeypatch, "_made")
    for _ in range(4):
        for xp in (np, fusec.xp, cupy, mine):
            same(fused(xp, X), of_namespace(mine if xp is mine else np, X))
    assert len(traces) == 4


def test_a_module_is_not_asked_for_what_it_lacks() -> None:
    asked = list[str]()
    mine: Any = ModuleType("numpy.mine")  # of a library, so that it is a constant
    mine.__getattr__ = lambda name: asked.append(name) or getattr(np, name)
    fused: Any = fusec.fuse(of_choice)
    for _ in range(3):
        same(fused(X, mine), X * 3)
    assert asked == []


def test_equal_constants_that_are_not_identical_are_one() -> None:
    fused: Any = fusec.fuse(of_choice)
    for _ in range(4):
        same(fused(X, "".join(["dou", "ble"])), X * 2)
        same(fused(X, True), X * 3)
        same(fused(X, 1), X * 3)
        same(fused(X, 0.0), X)
    assert len(fused._plans) == 4


def test_a_dtype_whose_fields_are_renamed_is_another_constant() -> None:
    dtype: Any = np.dtype([("a", "f8")])
    fused: Any = fusec.fuse(lambda x, dtype: x * (2 if dtype.names == ("a",) else 3))
    for _ in range(3):
        same(fused(X, dtype), X * 2)
    dtype.names = ("b",)
    for _ in range(3):
        same(fused(X, dtype), X * 3)


def test_attributes_of_a_module_of_the_users_are_read_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = a_module(2.0)
    fused: Any = fusec.fuse(lambda m, x: m.add(m.double(x), m.scale))
    traces = counted(monkeypatch, "_made")
    for scale in (2.0, 3.0, 4.0, 5.0):
        module.scale = scale
        for _ in range(3):
            same(fused(module, X), X * 2 + scale)
    module.double = lambda x: x * 5
    module.add = np.subtract
    same(fused(module, X), X * 5 - 5)
    assert len(traces) < 6


def test_functions_made_anew_are_one_kind_of_call(monkeypatch: pytest.MonkeyPatch) -> None:
    fused: Any = fusec.fuse(of_function)
    traces = counted(monkeypatch, "_made")
    for shift in (1.0, 2.0, 3.0, 4.0, 5.0):
        same(fused(lambda x, shift=shift: x * shift, X), X * shift + 1)
    assert len(traces) < 4


def test_constants_that_are_never_the_same_are_forgotten() -> None:
    fused: Any = fusec.fuse(lambda x, function: x + 1)
    kept = [[at].copy for at in range(2 * MAX_PLANS)]
    for each in kept:
        same(fused(X, each), X + 1)
    assert len(fused._constants) <= MAX_PLANS + 1
    fused.clear_cache()
    assert not fused._constants


def test_functions_that_draw_are_refused_after_others() -> None:
    fused: Any = fusec.fuse(lambda function, x: x + 1)
    for function in (np.sqrt, own, np.random.normal, np.random.normal, np.random.default_rng(0).normal):
        if function in (np.sqrt, own):
            same(fused(function, X), X + 1)
            continue
        with pytest.raises(fusec.FusecError, match="random"):
            fused(function, X)


def test_a_call_of_constants_alone_belongs_to_the_trace_around_it() -> None:
    zeros: Any = fusec.fuse(lambda xp: xp.zeros(2))
    for _ in range(3):
        same(zeros(np), np.zeros(2))
    holder = {"zeros": zeros}

    def around(x: Any, functions: Any) -> Any:
        made = functions["zeros"](np)
        made[0] = x.sum()
        return made

    fused: Any = fusec.fuse(around)
    for _ in range(3):
        same(fused(X, holder), np.array([X.sum(), 0]))


def test_numbers_from_outside_are_not_taken_for_arguments_that_are_needed_as_such() -> None:
    module: Any = a_module(1.0)
    fused: Any = fusec.fuse(lambda x, rest: x * rest.scale if hasattr(rest, "scale") else x + len(repr(rest)))
    for scale in (1.0, 2.0, 1.0, 3.0):
        module.scale = scale
        same(fused(X, module), X * scale)
        same(fused(X, 1.0), X + 3)


def shown(constant: Any, x: Any, rest: Any = None) -> Any:
    """A function of whatever is constant, by operations whose bits are NumPy's."""
    if rest is not None:
        return shown(constant, x) + shown(rest, x)
    if isinstance(constant, tuple):
        return sum((shown(each, x) * (at + 1) for at, each in enumerate(constant)), x * 0)
    if constant is None or isinstance(constant, (str, bool, float, int)):
        return x + len(repr(constant))
    if isinstance(constant, type):
        return x.astype(constant) * 3.0
    if hasattr(constant, "scale"):
        return constant.double(x) * constant.scale
    if isinstance(constant, ModuleType):
        return constant.sqrt(x)
    return constant(x)


MODULES = [a_module(2.0), a_module(3.0)]
CONSTANTS = [np, fusec.xp, None, True, False, 1, 1.0, "a", "ab", np.sqrt, np.square, np.float32, int, own, *MODULES]
ANY = st.one_of(st.sampled_from(CONSTANTS), st.lists(st.sampled_from(CONSTANTS), max_size=2).map(tuple))
ONE: Any = fusec.fuse(shown)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(ANY, st.one_of(st.none(), ANY), st.booleans(), st.sampled_from([1.0, 2.0])), max_size=6))
def test_calls_with_changing_constants_give_what_the_function_gives(calls: Any) -> None:
    for constant, rest, is_keyword, scale in [*calls, *calls]:
        MODULES[0].scale = scale  # type: ignore[attr-defined]
        mine = ONE(constant, X, rest=rest) if is_keyword else ONE(constant, X, rest)
        same(mine, shown(constant, X, rest))
