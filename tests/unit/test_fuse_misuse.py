"""Mistakes in fused functions, and other calls that used to raise exceptions without a code."""

from __future__ import annotations

import collections
import functools
import math
import re
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.ndimage
import scipy.sparse
import scipy.special
from scipy.ndimage import gaussian_filter

import fusec
from fusec import xp
from fusec.fusion.trace.tables import FUNCTIONS, INSTEAD, METHODS

X = np.ones((3, 4))


@pytest.mark.parametrize(
    ("function", "code", "message", "hint"),
    [
        (lambda x: x.sum(axis=1, keepdim=True), "F281", "'sum' with keepdim= cannot", "did you mean 'keepdims'?"),
        (lambda x: x.sum(axis=1, nothing=True), "F281", "'sum' with nothing= cannot", "leave it out"),
        (lambda x: math.sqrt(x), "F281", "math.sqrt cannot be fused", "write np.sqrt(x)"),
        (lambda x: math.erf(x), "F281", "math.erf cannot be fused", "NumPy has none: a function with @fusec.element"),
        (lambda x: x[: x.argmin()], "F280", "the bound of a slice needs values", "pass it as a number; or"),
        (lambda x: np.gradient(x[0], x[1]), "F280", "np.gradient with an array of coordinates needs", "pass distances"),
        (lambda x: np.cov(x, aweights=x[0]), "F280", "np.cov with an array of weights needs", "call it before or"),
        (lambda x: np.float32(x), "F280", "np.float32(x) needs", 'convert by a method: x.astype("float32")'),
        (lambda x: float(x), "F280", "float() needs values of an array", "leave out float()"),
        (lambda x: x.mean(axis=4), "F240", "axis 4 is out of bounds for array of dimension 2", "the axes of "),
        (lambda x: np.max(x, axis=-3), "F240", "axis -3 is out of bounds for array of dimension 2", "the axes of "),
    ],
)
def test_hint_and_line(function: Callable[..., Any], code: str, message: str, hint: str) -> None:
    with pytest.raises(fusec.FusecError) as raised:
        fusec.fuse(function)(X)
    assert raised.value.code == code
    assert message in str(raised.value)
    assert raised.value.hint.startswith(hint)
    assert raised.value.span is not None
    assert "lambda x" in raised.value.span.text


def test_slice_bounds_that_are_no_integers_raise_as_in_numpy() -> None:
    with pytest.raises(TypeError, match="slice indices must be integers"):
        fusec.fuse(lambda x: x[x.sum() :])(X)
    assert fusec.fuse(lambda x: x[np.array([0, 2])[1] :])(X).shape == (1, 4)


@pytest.mark.parametrize(
    ("given", "code", "told"),
    [
        (np.random.default_rng(0), "F701", "numpy.random.Generator in a fused function would draw"),
        (collections.defaultdict(int), "F282", "pass dict(given), which"),
        (collections.deque([1]), "F282", "pass list(given), which"),
    ],
)
def test_arguments_that_are_refused_have_names_and_cures(given: Any, code: str, told: str) -> None:
    with pytest.raises(fusec.FusecError) as raised:
        fusec.fuse(lambda x, given: x)(X, given)
    assert raised.value.code == code
    assert told in str(raised.value)


def test_stores_in_dictionaries_are_refused_with_their_key_and_line() -> None:
    def store(d: Any, x: Any) -> None:
        x = x + 1
        d["y"] = x * 2

    with pytest.raises(fusec.FusecTypeError, match=r"changes item 'y' of a dict \('d'\) that is not its own") as raised:
        fusec.fuse(store)({}, X)
    assert raised.value.span is not None
    assert raised.value.span.text == 'd["y"] = x * 2'
    with pytest.raises(fusec.FusecTypeError, match=r"changes a list \('d'\) that is not its own"):
        fusec.fuse(lambda d, x: d.append(x * 2))([], X)


def test_source_of_a_function_says_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"unknown target of type ndarray.*\n.*; the target comes first"):
        fusec.fuse(lambda x: x + 1).source(X, "cuda")
    with pytest.raises(TypeError, match="the call computes no elements, or NumPy does"):
        fusec.fuse(lambda x: x).source("cuda", X)


@pytest.mark.parametrize("dtype", ["complex128", "float32", "int64"])
def test_angles_in_degrees_are_numpys(dtype: str) -> None:
    x = np.array([1, -2, 0, -1]).astype(dtype) * (1 + 1j if dtype[0] == "c" else 1)
    found, wanted = fusec.fuse(lambda x: np.angle(x, deg=True))(x), np.angle(x, deg=True)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-15 if found.dtype == np.float64 else 1e-6)


def test_function_catches_an_axis_error() -> None:
    @fusec.fuse
    def last(x: Any) -> Any:
        x += 1
        try:
            return x.sum(axis=2)
        except np.exceptions.AxisError:
            return x.sum(axis=1)

    assert last(X.copy()).tolist() == [8.0, 8.0, 8.0]


def test_writes_before_an_axis_error_stay() -> None:
    given = X.copy()

    @fusec.fuse
    def wrong(x: Any) -> Any:
        x += 1
        return x.sum(axis=2)

    with pytest.raises(fusec.FusecAxisError) as raised:
        wrong(given)
    assert (raised.value.axis, raised.value.ndim, given[0, 0]) == (2, 2, 2.0)


@pytest.mark.parametrize(
    ("call", "code", "text"),
    [
        (lambda: fusec.sum(X, dtype="flot32"), "F102", "data type 'flot32' not understood [F102]\nhint: did you mean"),
        (lambda: fusec.cumsum(X, dtype="flot32"), "F102", "did you mean 'float32'? dtype= takes a name such as"),
        (
            lambda: fusec.NumExpr("a + b", ["a", "b"]),
            "F507",
            "the signature ['a', 'b'] has no types [F507]\nhint: pass",
        ),
        (lambda: fusec.barrier(), "F397", "fusec.barrier() works only in kernels with block="),
    ],
)
def test_errors_have_codes(call: Callable[[], object], code: str, text: str) -> None:
    with pytest.raises(fusec.FusecError) as raised:
        call()
    assert raised.value.code == code
    assert text in str(raised.value)


def test_functions_that_wrap_kernels_are_fused() -> None:
    @fusec.fuse
    @functools.wraps(fusec.sum)
    def total(x: Any) -> Any:
        return np.sum(x)

    assert total(X) == fusec.fuse(fusec.fuse(lambda x: x.sum()))(X) == X.sum()


OF_VALUES = {
    "np.where(mask, x, y), x.sum(where=mask)": (
        lambda x: np.nonzero(x), lambda x: x.nonzero(), lambda x: np.flatnonzero(x), lambda x: np.argwhere(x),
        lambda x: np.extract(x > 0, x), lambda x: np.compress(x[:, 0] > 0, x, axis=0), lambda x: x[x > 0],
        lambda x: x[0, x[0] > 0],
    ),
    "s[1:] != s[:-1]": (lambda x: np.unique(x), lambda x: np.unique_counts(x), lambda x: np.unique_values(x)),
    "np.isin(a, b)": (lambda x: np.union1d(x, x), lambda x: np.setdiff1d(x, x), lambda x: np.intersect1d(x, x)),
    "np.where(condition, a, b)": (
        lambda x: x if x.any() else -x, lambda x: [each for each in x[0] if each > 0],
        lambda x: 1 if np.allclose(x, x) else 2, lambda x: list(filter(lambda each: each > 0, x[0])),
    ),
    "write np.max(x[0])": (lambda x: max(x[0]),),
    "np.sort(x)": (lambda x: sorted(x),),
    "write np.sort(x.ravel())": (lambda x: sorted(x.ravel()),),
    "write np.maximum(a, b)": (lambda x: max(x[0, 0], x[0, 1]),),
    "write (0.2 < x) & (x < 0.5)": (lambda x: np.where(0.2 < x < 0.5, x, 0),),
    "write (x < 0) | (x > 1)": (lambda x: np.where(x < 0 or x > 1, x, 0),),
    "write np.logical_not(x > 0)": (lambda x: np.where(not x > 0, x, 0),),
    "write (x == 0.5).any()": (lambda x: 0.5 in x,),
    "return it, and print the result": (lambda x: print(x), lambda x: print("sum:", x.sum()), lambda x: f"{x.sum()}"),
    "leave out item()": (lambda x: x.sum().item(),),
    "as a Python number": (lambda x: range(x.argmax()),),
    "np.add.at(counts, x, 1)": (lambda x: np.bincount(x[0].astype(int), minlength=4),),
    "np.where(mask, a, b)": (lambda x: x[:, x[0] > 0],),
    "np.putmask": (lambda x: np.place(x, x > 0, [1, 2]),),
    "np.where(condition, f(x), y)": (lambda x: np.piecewise(x, [x < 0], [np.abs]),),
    "np.linalg.eigh": (lambda x: np.linalg.eig(x[:3, :3]),),
    "write z.real": (lambda x: np.real_if_close(x),),
    "pass np.array([...]) in place of a list": (lambda x: np.linalg.norm([x[0], x[1]]),),
    "return the array, and call it on the result": (lambda x: x.tobytes(), lambda x: np.array2string(x)),
}  # fmt: skip


@pytest.mark.parametrize(
    ("cure", "function"), [(cure, function) for cure, functions in OF_VALUES.items() for function in functions]
)
def test_what_depends_on_values_names_the_nearest_replacement(cure: str, function: Callable[..., Any]) -> None:
    with pytest.raises(fusec.FusecTypeError) as raised:
        fusec.fuse(function)(X)
    assert cure in raised.value.hint
    assert raised.value.span is not None
    assert "lambda x" in raised.value.span.text


def test_loops_and_assertions_that_need_values_say_where_they_can_be() -> None:
    def halve(x: Any) -> Any:
        while x.max() > 0.1:
            x = x / 2
        return x

    def root(x: Any) -> Any:
        assert (x >= 0).all(), "negative"
        return np.sqrt(x)

    for function, told, cure in (
        (halve, "the condition of a loop", "fuse one step"),
        (root, "an assertion", "check it"),
    ):
        with pytest.raises(fusec.FusecTypeError, match=f"{told} needs values") as raised:
            fusec.fuse(function)(X)
        assert cure in raised.value.hint


@pytest.mark.parametrize(
    ("function", "told", "hint"),
    [
        (lambda x: statistics.mean(x[0]), "statistics.mean", "call it before or after"),
        (lambda x: scipy.ndimage.gaussian_filter(x, 1), "scipy.ndimage.gaussian_filter", "call it before or after"),
        (lambda x: gaussian_filter(x, 1), "gaussian_filter of scipy", "call it before or after"),
        (lambda x: scipy.special.softmax(x, axis=1), "scipy.special.softmax", "write fusec.softmax(x), or"),
    ],
)
def test_functions_of_other_packages_are_refused_at_the_users_line(
    function: Callable[..., Any], told: str, hint: str
) -> None:
    with pytest.raises(fusec.FusecTypeError, match=rf"{re.escape(told)} cannot be fused \[F281\]") as raised:
        fusec.fuse(function)(X)
    assert raised.value.hint.startswith(hint)
    assert raised.value.span is not None
    assert raised.value.span.file.name == __file__


def test_sparse_matrices_are_refused_by_name() -> None:
    with pytest.raises(fusec.FusecTypeError, match=r"argument 'a' is a sparse matrix.*F282") as raised:
        fusec.fuse(lambda a: a * 2)(scipy.sparse.eye(3))
    assert raised.value.hint.startswith("pass a.toarray()")


def test_no_hint_is_for_a_function_that_is_fused() -> None:
    fusec.fuse(lambda x: x)(X)
    assert not INSTEAD.keys() & (FUNCTIONS.keys() | METHODS.keys())


def test_every_function_that_is_refused_has_a_hint_of_its_own() -> None:
    names = {name for name, each in vars(np).items() if isinstance(each, type(np.sum)) and name[0] != "_"}
    dates = {"busday_count", "busday_offset", "datetime_as_string", "is_busday"}
    assert names - dates - FUNCTIONS.keys() - INSTEAD.keys() == set()


def test_a_read_only_array_of_a_known_kind_is_refused_before_anything_else_is_lost() -> None:
    def add(x: Any, y: Any) -> Any:
        x += 1
        y += x
        return y

    fused = fusec.fuse(add)
    for _ in range(4):
        fused(X.copy(), X.copy())
    frozen = X.copy()
    frozen.flags.writeable = False
    for call in (fused, lambda x, y: fused(x, y=y), add):  # NumPy's error, after what comes before it
        first = X.copy()
        with pytest.raises(ValueError, match="read-only") as raised:
            call(first, frozen)
        assert not isinstance(raised.value, fusec.FusecError)
        np.testing.assert_array_equal(first, X + 1)
    np.testing.assert_array_equal(fused(X.copy(), X.copy()), X + 2)


def test_writes_to_elements_that_share_memory_are_refused_with_their_line() -> None:
    given = np.lib.stride_tricks.as_strided(np.ones(8), (4, 2), (8, 8))

    @fusec.fuse
    def doubled(x: Any) -> None:
        x *= 2

    with pytest.raises(fusec.FusecTypeError, match="elements that share memory") as raised:
        doubled(given)
    assert raised.value.code == "F281"
    assert raised.value.span is not None
    assert "x *= 2" in raised.value.span.text


@pytest.mark.parametrize("given", [3, "x + 1", X, [math.sqrt], property(abs), classmethod(abs)])
def test_what_cannot_be_called_is_refused_where_it_is_fused(given: Any) -> None:
    for make in (fusec.fuse, fusec.fuse(name="made")):
        with pytest.raises(fusec.FusecTypeError, match="cannot be called, so it cannot be fused") as raised:
            make(given)
        assert (raised.value.code, raised.value.hint[:17]) == ("F174", "write @fusec.fuse")


def _sign(value: float) -> float:
    return 1.0 if value > 0 else -1.0


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        (lambda x: x[x > 0].max(), "write x.max(where=mask, initial=-np.inf), whose initial= is the result if nothing"),
        (lambda x: np.min(x[x > 0]), "write x.min(where=mask, initial=np.inf), whose initial="),
        (lambda x: x[x > 0].astype("i4").max(), "write x.max(where=mask, initial=np.iinfo(x.dtype).min), whose"),
        (lambda x: len(x[x > 0]), "write mask.sum(), which counts"),
        (lambda x: x[x > 0].size, "write mask.sum(), which counts"),
        (lambda x: np.median(x[x > 0]), "write np.nanmedian(np.where(mask, x, np.nan))"),
        (lambda x: x[x > 0].argmax(), "write np.where(mask, x, -np.inf).argmax(), which is a position"),
        (lambda x: np.sort(x[x > 0]), "how many there are depends on values"),
        (lambda x: np.vectorize(_sign)(x), "write fusec.vectorize(function), which can be called here, or np.where"),
        (lambda x: np.frompyfunc(_sign, 1, 1)(x), "write fusec.vectorize(function), which can be called here"),
    ],
)
def test_what_to_write_for_the_part_that_a_mask_picks_and_for_functions_of_numbers(
    function: Callable[..., Any], hint: str
) -> None:
    with pytest.raises(fusec.FusecTypeError) as raised:
        fusec.fuse(function)(X)
    assert raised.value.code == "F281"
    assert raised.value.hint.startswith(hint)


def test_containers_that_hold_themselves() -> None:
    def within(levels: int) -> Any:
        found: Any = X
        for _ in range(levels):
            found = [found]
        return found

    table: dict[str, Any] = {"a": X}
    table["self"] = table
    items: list[Any] = [X]
    items.append(items)
    fused = fusec.fuse(lambda d, e: d[0] if isinstance(d, list) else d["a"])
    assert fused([X], within(90)) is X
    for given, name in (((items, X), "'d'"), ((table, X), "'d'"), ((X, within(2000)), "'e'")):
        with pytest.raises(TypeError, match=f"argument {name}, which holds itself or more than 100 levels") as raised:
            fused(*given)
        assert raised.value.code == "F282"
        assert "in one list" in raised.value.hint

    def returned(x: Any) -> Any:
        found = [x * 2]
        found.append(found)
        return found

    with pytest.raises(TypeError, match="cannot return a container that holds itself"):
        fusec.fuse(returned)(X)


def test_an_output_whose_elements_share_memory() -> None:
    x, out = np.ones(4), np.lib.stride_tricks.as_strided(np.zeros(1), (4,), (0,))
    for function in (lambda x, y: fusec.softmax(x, out=y), fusec.fuse(lambda x, y: fusec.softmax(x, out=y))):
        with pytest.raises(ValueError, match="'out' of kernel 'softmax' has elements that share memory"):
            function(x, out)
        with pytest.raises(ValueError, match="output array is read-only"):
            function(x, np.broadcast_to(np.zeros(1), 4))


@pytest.mark.parametrize("verb", ["", "explain", "graph"])
@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize(("count", "names"), [(0, ()), (1, ()), (3, ()), (1, ("z",)), (2, ("b",)), (2, ("z",))])
def test_calls_that_do_not_fit_the_parameters_fail_as_those_of_the_function(
    verb: str, is_known: bool, count: int, names: tuple[str, ...]
) -> None:
    def two(a: Any, b: Any) -> Any:
        return a + b

    fused, args, options = fusec.fuse(two), [np.ones(5)] * count, dict.fromkeys(names, np.ones(5))
    for _ in range(4 * is_known):
        fused(np.ones(5), np.ones(5))
    with pytest.raises(TypeError) as own:
        two(*args, **options)
    with pytest.raises(TypeError) as found:
        (getattr(fused, verb) if verb else fused)(*args, **options)
    assert not isinstance(found.value, fusec.FusecError)
    assert str(found.value).rpartition(".")[2] == str(own.value).rpartition(".")[2]


def test_methods_that_are_fused_name_their_own_parameters() -> None:
    class Holder:
        @fusec.fuse
        def shifted(self, a: Any) -> Any:
            return a + 1

    with pytest.raises(TypeError, match=r"shifted\(\) missing 1 required positional argument: 'a'"):
        Holder().shifted()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"shifted\(\) takes 2 positional arguments but 3 were given"):
        Holder().shifted(np.ones(3), np.ones(3))  # type: ignore[call-arg]


def test_classes_and_asynchronous_functions_are_refused_where_they_are_decorated() -> None:
    class Holder:
        """No function of arrays."""

    async def later(x: Any) -> Any:
        return x

    async def one_by_one(x: Any) -> Any:
        yield x

    for each in (Holder, dict, later, one_by_one):
        with pytest.raises(fusec.FusecTypeError, match="F174"):
            fusec.fuse(each)


def test_an_error_is_written_by_its_text() -> None:
    found = fusec.validate("a+q")
    assert repr(found).startswith("FusecKeyError(")
    assert "'a' is defined neither" in repr(found)
    assert "[F503]; hint: assign it" in repr(found)


@pytest.mark.parametrize("name", ["sum", "prod", "max", "any", "count_nonzero", "nansum", "ptp"])
def test_axes_that_are_no_integers_have_the_message_of_numpy(name):
    call = getattr(np, name)
    for x in (np.ones((2, 3)), np.ones(())):
        for axis in (1.0, 0.0, "t", (0, 1.0), (0,)):
            if axis == (0,) and x.ndim:
                continue
            with pytest.raises((TypeError, ValueError)) as wanted:
                call(x, axis=axis)
            for function in (fusec.fuse(lambda x: call(x, axis=axis)), lambda x: call(xp.asarray(x), axis=axis)):  # noqa: B023
                with pytest.raises(type(wanted.value)) as found:
                    function(x)
                assert str(found.value).startswith(str(wanted.value))
