"""source() of functions that call kernels: every kernel in one text, and a comment that lists the launches."""

import re
from typing import Any

import numpy as np
import pytest

import fusec
from fusec import FusecError

X = np.ones((3, 4), np.float32)


def lines_of(text: str) -> list[str]:
    """The lines of the first comment, without what marks it."""
    return [line[3:] for line in text.split("\n\n")[0].splitlines()]


@fusec.fuse
def centred(x: Any) -> Any:
    return x - x.mean()


def test_a_comment_lists_launches_with_sizes_arguments_and_what_lies_between() -> None:
    text = centred.source("cuda", np.ones(100_000, np.float32))
    assert lines_of(text) == [
        "centred: 2 launches in this order",
        "  x: float32 (100000,)",
        "  1. centred_first_1_to_end over 13 blocks of 512 threads; the last goes on; done = 0 before and after:",
        "     centred_first_1 over 13 blocks of 512 threads: size = 13, a0 = x, partial0 = t1, axis = 100000",
        "     centred_last_2 over 32 threads: size = 32, given0 = t1, z0 = t2, axis = 13",
        "  2. centred_3 over 100,000 elements, 4 a thread: size = 100000, a0 = x, a1 = t2, s0 = 100000, z0 = r1",
        "  t1: float32 (13,), 52 bytes, written by launch 1",
        "  t2: float32 (1,), 4 bytes, written by launch 1, read by launch 2",
        "  r1: float32 (100000,), 400,000 bytes, written by launch 2, returned",
    ]
    kernels = re.findall(r"__global__ .* (\w+)\(", text)
    assert kernels == ["centred_first_1_to_end", "centred_3"]


def test_layouts_are_those_of_the_arguments() -> None:
    @fusec.fuse
    def both(x: Any, y: Any) -> Any:
        return x + y.T

    text = both.source("cuda", np.ones((3, 4)), np.ones((4, 3)))
    assert "stride 1 of a1 = 24" in text
    assert both.source("cuda", np.ones((3, 4), order="F"), np.ones((4, 3))).count("stride") < text.count("stride")
    assert "a0 = x + 8 bytes" in fusec.fuse(lambda x: x[1:] * 2).source("cuda", np.ones(5))


def test_an_array_that_is_given_twice_has_the_name_of_its_first_parameter() -> None:
    @fusec.fuse
    def first(x: Any, y: Any) -> Any:
        x[:] = y[::-1] + x
        return y

    given = np.arange(5.0)
    for args in ((given, given), (given, given[::-1])):
        lines = lines_of(first.source("cuda", *args))
        assert lines[1].startswith("  x: float64 (5,), written by launch ")
        assert lines[2] == "  y: float64 (5,), memory of x"
        assert not any("= y" in line for line in lines[3:])
    assert "memory of" not in first.source("cuda", given, given.copy())


def test_kernels_that_are_equal_are_there_once() -> None:
    @fusec.fuse
    def twice(x: Any, y: Any) -> Any:
        return x[1:] - x[:-1], y[1:] - y[:-1]

    text = twice.source("metal", np.ones(7, "f4"), np.ones(9, "f4"))
    assert [line.split(":")[0] for line in lines_of(text)[3:5]] == [
        "  1. twice over 6 threads",
        "  2. twice over 8 threads",
    ]
    assert text.count("kernel void") == 1


def test_what_overlaps_an_output_is_stored_apart_first() -> None:
    @fusec.fuse
    def shift(x: Any) -> None:
        x[1:] = x[:-1] + 1

    found = lines_of(shift.source("cuda", np.ones(5)))
    first, second = (each.split(": ") for each in found if "shift_" in each)
    assert first[0].startswith("  1. shift_1 over 4 ")
    assert re.fullmatch("size = 4, a0 = x, .*z0 = t1", first[1])
    assert second[0].startswith("  2. shift_2 over 4 ")
    assert second[1] == "size = 4, a0 = t1, z0 = x + 8 bytes"


def test_numbers_containers_and_arrays_from_outside_have_names() -> None:
    weight = np.ones(3)

    @fusec.fuse
    def scaled(pair: Any, n: Any) -> Any:
        return {"a": pair[0] * weight + pair[1]["b"] * n}

    found = lines_of(scaled.source("cuda", (np.ones(3), {"b": np.ones(3)}), 2.5))
    assert found[1:5] == [
        "  pair[0]: float64 (3,)",
        "  pair[1]['b']: float64 (3,)",
        "  n: 2.5, a number",
        "  c1: float64 (3,), from outside of the function",
    ]
    assert "s0 = 2.5" in found[5]


def test_a_number_that_is_returned_is_told_from_a_total_that_is_not() -> None:
    @fusec.fuse
    def spread(x: Any) -> Any:
        total = x.sum()
        return total, (x * total).max()

    found = lines_of(spread.source("cuda", np.ones(100_000)))
    returned = [line for line in found if line.endswith("returned")]
    assert len(returned) == 2
    assert all(" (1,), " in line for line in returned)


def test_nothing_to_do_is_no_launch() -> None:
    assert fusec.fuse(lambda x: x + 1).source("cuda", X[:0]) == "// fused: 0 launches\n//   x: float32 (0, 4)\n"


@pytest.mark.parametrize("target", ["cuda", "metal", "llvm", "asm", "ir"])
@pytest.mark.parametrize("function", [centred, fusec.softmax, fusec.cumsum])
def test_every_target_lists_the_launches(function: Any, target: str) -> None:
    text = function.source(target, X)
    assert "launch" in text.split("\n", 1)[0]
    assert function.name in text.split("\n\n", 1)[1]


def test_several_kernels_are_one_module_of_llvm() -> None:
    from llvmlite import binding

    @fusec.fuse
    def powers(x: Any, y: Any) -> Any:
        return np.exp(x), np.exp(y[::2]), x.sum(axis=0), y.max()

    text = powers.source("llvm", X, np.ones(30, np.float32))
    binding.parse_assembly(text).verify()
    assert len(re.findall(r'^define void @"fusec\.powers_\d"', text, re.MULTILINE)) == 4


def test_evaluate_shows_a_text_with_the_names_of_its_caller() -> None:
    a, b = X, np.ones(5, np.float32)
    found = lines_of(fusec.evaluate.source("cuda", "a / sum(b)"))  # type: ignore[attr-defined]
    assert found[:3] == ["evaluate: 2 launches in this order", "  a: float32 (3, 4)", "  b: float32 (5,)"]
    assert "sum1 = t1" in found[4]
    del a, b
    found = lines_of(fusec.evaluate.source("cuda", "2*a", {"a": X[0]}))  # type: ignore[attr-defined]
    assert found[1] == "  a: float32 (4,)"


@pytest.mark.parametrize("shape", [(3, 4), {"x": (3, 4), "y": (4,)}])
def test_shapes_are_those_of_all_or_of_each(shape: Any) -> None:
    @fusec.fuse
    def added(x: Any, y: Any) -> Any:
        return x + y

    text = added.source("cuda", types={"x": "float32", "y": "float64"}, shape=shape)
    assert "  x: float32 (3, 4)" in lines_of(text)
    assert text == added.source("cuda", {"x": "float32", "y": "float64"}, shape=shape)


def test_a_shape_of_no_parameter_is_refused() -> None:
    with pytest.raises(FusecError, match="z"):
        centred.source("cuda", types={"x": "float32"}, shape={"z": (3,)})


def test_source_runs_nothing() -> None:
    x = np.zeros(4)

    @fusec.fuse
    def counted(x: Any) -> Any:
        x += 1
        return x

    assert "x" in counted.source("cuda", x)
    assert not x.any()


def test_calls_of_libraries_have_places_among_the_launches() -> None:
    @fusec.fuse
    def between(x: Any, y: Any) -> Any:
        return (2 * x) @ y + 1

    assert lines_of(between.source("cuda", np.ones((3, 3)), np.ones((3, 3))))[0::4] == [
        "between: 2 launches and 1 library call in this order",
        "  A. np.matmul: reads t1, reads y, makes t2",
        "  r1: float64 (3, 3), 72 bytes, written by launch 2, returned",
    ]
    text = fusec.fuse(lambda x, y: ((2 * x) @ y) @ y + 1).source("cuda", np.ones((3, 3)), np.ones((3, 3)))
    assert "written by call A, read by call B" in text
    assert "written by launch 1, read by call A" in text


def test_compiled_graphs_list_their_launches() -> None:
    graph = fusec.graph.Graph("double")
    graph.output(graph.input("x", "float64", ("n",)) * 2)
    for asked in ({"n": 7}, {"shape": (7,)}, {"shape": {"x": (7,)}}):
        assert lines_of(graph.compile().source("cuda", **asked))[:2] == ["double: 1 launch", "  x: float64 (7,)"]


@pytest.mark.parametrize("target", ["cuda", "metal", "llvm", "asm", "ir"])
def test_checks_of_indices_are_listed_with_the_extents_that_they_are_given(target: str) -> None:
    gather = fusec.fuse(lambda table, ids: np.maximum(table[ids], 0))
    text = gather.source(target, np.ones((50, 10), np.float32), np.arange(5))
    assert "A. a check of indices: reads ids, is given 50\n" in text
    taken = fusec.fuse(lambda x, i: np.take_along_axis(x, i, axis=1) + np.take(x, i[0], axis=0).sum())
    assert "check of indices" in taken.source(target, np.ones((4, 6), np.float32), np.zeros((4, 2), np.int64))


def as_float64(x: Any) -> Any:
    return x.astype("float64") * 2


@pytest.mark.parametrize(
    ("function", "args", "named", "cure"),
    [
        (lambda x: x * 2, (np.ones(3),), "argument 'x'", "pass it as float32"),
        (lambda a1, a0: a1 * a0, (np.ones(3), X[0, :3]), "argument 'a1'", "pass it as float32"),
        (lambda x, y: x.sum() + y[1:], (X, np.ones(3)), "argument 'y'", "pass it as float32"),
        (lambda d: d["k"] * 2, ({"k": np.ones(3, "c16")},), "argument 'd['k']'", "pass it as complex64"),
        (lambda x, k: x * k, (X, np.float64(3.25)), "argument 'k'", "pass it as float32"),
        (as_float64, (X,), "an array or number in 'as_float64'", "make it float32, e.g. x.astype('float32')"),
    ],
)
def test_a_dtype_that_a_target_lacks_is_that_of_what_the_user_named(
    function: Any, args: tuple[Any, ...], named: str, cure: str
) -> None:
    with pytest.raises(FusecError, match=rf"^{re.escape(named)} has dtype .* which metal does not have") as raised:
        fusec.fuse(function).source("metal", *args)
    assert raised.value.hint == cure


def test_kernels_of_users_keep_the_names_of_their_parameters() -> None:
    with pytest.raises(FusecError, match=r"^parameter 'x' has dtype float64"):
        fusec.ElementwiseKernel("T x", "T y", "y = x").source("metal", {"T": "float64"})
    with pytest.raises(FusecError, match=r"^parameter 'x' has dtype float64"):
        fusec.sum.source("metal", np.ones(3))
    with pytest.raises(FusecError, match=r"^parameter 'y' has dtype float64"):
        fusec.ElementwiseKernel("float32 x", "float64 y", "y = x").source("metal")
