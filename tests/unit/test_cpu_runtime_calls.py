"""The native entry computes what Python would, hands over whatever is not plain, and never leaks or crashes."""

import fractions
import gc
import inspect
import math
import random
import sys
import weakref
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusec.base.dtypes import (
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DType,
)  # fmt: skip
from fusec.base.kernel_abi import Kernel, Layout, Slot, Step
from fusec.runtime.cpu import engine, fastcall, memory
from fusec.runtime.cpu.description import MOST_SLOTS
from fusec.runtime.cpu.fastcall import ArgSpec, CallForm, make

pytestmark = pytest.mark.skipif(bool(fastcall.objection_to_build()), reason=fastcall.objection_to_build())

LLVM = {BOOL: "i8", FLOAT32: "float", FLOAT64: "double"}


def llvm_type(dtype: DType) -> str:
    return LLVM.get(dtype, f"i{dtype.bits}")


def copy_kernel(pairs: list[tuple[str, str]], dtypes: dict[str, DType], raw: frozenset[str] = frozenset()) -> Kernel:
    """A kernel that stores each pair's first into its second: arrays by element, raw ones by element 0, numbers."""
    arrays = [name for name in dtypes if name[0] in "xyzr"]
    slots = [Slot("size", "", 0, INT64)]
    slots += [Slot("pointer" if name in arrays else "scalar", name, 0, dtype) for name, dtype in dtypes.items()]
    slots += [Slot("raw_size", name, 0, INT64) for name in sorted(raw)]
    lines = ["define void @copy(i64 %lo, i64 %hi, ptr %slots) {", "entry:"]
    for at, slot in enumerate(slots):
        lines += [f"  %{slot.param}s{at} = getelementptr i64, ptr %slots, i64 {at}"]
        kind = "ptr" if slot.kind == "pointer" else llvm_type(slot.dtype)
        lines += [f"  %{slot.kind}.{slot.param} = load {kind}, ptr %{slot.param}s{at}"]
    lines += ["  br label %loop", "loop:", "  %i = phi i64 [ %lo, %entry ], [ %next, %body ]"]
    lines += ["  %more = icmp slt i64 %i, %hi", "  br i1 %more, label %body, label %out", "body:"]
    for number, (source, target) in enumerate(pairs):
        kind = llvm_type(dtypes[target])
        value = f"%scalar.{source}" if source in dtypes else f"%raw_size.{source[1:]}"
        if source in arrays:
            index = "0" if source in raw else "%i"
            lines += [f"  %from{number} = getelementptr {kind}, ptr %pointer.{source}, i64 {index}"]
            lines += [f"  %value{number} = load {kind}, ptr %from{number}"]
            value = f"%value{number}"
        lines += [f"  %to{number} = getelementptr {kind}, ptr %pointer.{target}, i64 %i"]
        lines += [f"  store {kind} {value}, ptr %to{number}"]
    lines += ["  %next = add i64 %i, 1", "  br label %loop", "out:", "  ret void", "}"]
    steps = tuple((name, (Step.UNIT,)) for name in arrays if name not in raw)
    layout = Layout(1, steps, tuple((name, (1, True)) for name in arrays if name in raw))
    return Kernel("copy", "llvm", tuple(slots), "\n".join(lines), layout)


class Fallback:
    """Remembers the calls it gets, and answers with a mark."""

    def __init__(self) -> None:
        self.calls: list[tuple[tuple[object, ...], dict[str, object]]] = []

    def __call__(self, *args: object, **kwargs: object) -> str:
        self.calls.append((args, kwargs))
        return "fallback"


def entry(
    pairs: list[tuple[str, str]],
    dtypes: dict[str, DType],
    *,
    fallback: Callable[..., object] | None = None,
    raw: frozenset[str] = frozenset(),
    kernel: Callable[[Kernel], Kernel] = lambda kernel: kernel,
    **options: object,
) -> Callable[..., object]:
    """The native entry of a copy kernel; parameters are arrays x.., raw r.., numbers n.., and outputs z.."""
    args = [ArgSpec(name, dtype, name[0] == "z", name[0] == "n") for name, dtype in dtypes.items()]
    executable = engine.compile(kernel(copy_kernel(pairs, dtypes, raw)))
    made = make(executable, args, fallback or Fallback(), "copy", CallForm(**options))
    assert inspect.isbuiltin(made)
    return made


SIMPLE = ([("x", "z")], {"x": FLOAT32, "z": FLOAT32})
A = np.arange(24, dtype=np.float32)


# --- plain calls -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(24,), (4, 6), (2, 3, 4), (1,), (1, 1, 1), (24, 1)])
def test_outputs_are_new_arrays_in_the_shape_of_the_inputs(shape: tuple[int, ...]) -> None:
    x = A[: math.prod(shape)].reshape(shape)
    z = entry(*SIMPLE)(x)
    assert type(z) is np.ndarray
    assert (z.shape, z.dtype, z.flags.c_contiguous, z.flags.owndata) == (shape, x.dtype, True, True)
    assert (z == x).all()
    assert not np.shares_memory(z, x)


def test_given_outputs_are_filled_and_returned() -> None:
    z = np.zeros_like(A)
    assert entry(*SIMPLE)(A, z) is z
    assert (z == A).all()
    assert entry(*SIMPLE)(z, z) is z, "element by element in place"


@pytest.mark.parametrize("dtype", [BOOL, INT8, INT16, INT32, INT64, UINT8, UINT32, UINT64, FLOAT32, FLOAT64])
def test_outputs_have_their_own_dtype(dtype: DType) -> None:
    run = entry([("n", "z")], {"x": FLOAT32, "n": dtype, "z": dtype})
    value = True if dtype is BOOL else 1
    z = run(A, value)
    assert z.dtype == dtype.numpy
    assert (z == value).all()


@pytest.mark.parametrize("returns", ["outputs", "tuple", "nothing"])
@pytest.mark.parametrize("outputs", [1, 2, 5])
def test_the_form_of_the_result(returns: str, outputs: int) -> None:
    names = [f"z{number}" for number in range(outputs)]
    run = entry([("x", name) for name in names], {"x": FLOAT32} | dict.fromkeys(names, FLOAT32), returns=returns)
    given_outputs = [np.zeros_like(A) for _ in names]
    for result, known in ((run(A), None), (run(A, *given_outputs), given_outputs)):
        if returns == "nothing":
            assert result is None
            continue
        if outputs == 1 and returns == "outputs":
            result = (result,)
        assert type(result) is tuple
        assert all((each == A).all() for each in result)
        if known is not None:
            assert all(a is b for a, b in zip(result, known, strict=True))


@pytest.mark.parametrize("size", [1, 1000, 60_000, 200_000, 3_000_000])
def test_large_arrays_run_in_chunks_and_their_outputs_are_recycled(size: int) -> None:
    fallback = Fallback()
    run = entry(*SIMPLE, fallback=fallback)
    x = np.arange(size, dtype=np.float32)
    z = np.zeros_like(x)
    assert run(x, z) is z
    assert (z == x).all()
    result = run(x)
    assert (result == x).all()
    assert fallback.calls == []
    assert result.flags.owndata == (x.nbytes < memory.LARGE)


# --- numbers ---------------------------------------------------------------------------------------------------------


@given(st.one_of(st.floats(), st.integers(-(1 << 65), 1 << 65), st.booleans()))
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64])
def test_numbers_for_float_parameters_convert_as_numpy_converts(dtype: DType, value: float) -> None:
    z = entry([("n", "z")], {"x": FLOAT32, "n": dtype, "z": dtype})(A, value)
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        assert z == "fallback"
    else:
        with np.errstate(over="ignore"):
            expected = np.asarray(float(value)).astype(dtype.numpy)
        assert np.array_equal(z, np.full(24, expected), equal_nan=True)
        assert (np.signbit(z) == np.signbit(expected)).all() or math.isnan(value)


@pytest.mark.parametrize("dtype", [INT8, UINT8, INT16, INT32, UINT32, INT64])
def test_integers_are_taken_in_range_and_no_further(dtype: DType) -> None:
    run = entry([("n", "z")], {"x": FLOAT32, "n": dtype, "z": dtype})
    bounds = np.iinfo(dtype.numpy)
    for value in (bounds.min, bounds.max, 0, 1, True, False):
        assert (run(A, value) == value).all()
    for value in (bounds.min - 1, bounds.max + 1, 1 << 64, -(1 << 70), 1.0, 0.5, None, "1", np.float64(1), 1j):
        assert run(A, value) == "fallback"


def test_bool_parameters_take_only_bools() -> None:
    run = entry([("n", "z")], {"x": FLOAT32, "n": BOOL, "z": BOOL})
    assert run(A, True).all()
    assert not run(A, False).any()
    assert run(A, np.True_).all()
    assert not run(A, np.False_).any()
    for value in (1, 0, 1.0, np.int8(1), None):
        assert run(A, value) == "fallback"


def test_a_number_whose_type_chose_the_dtype_must_keep_its_type() -> None:
    for dtype, good, bad in ((FLOAT64, [1.5], [1, True]), (INT64, [1], [1.5, True])):
        executable = engine.compile(copy_kernel([("n", "z")], {"x": FLOAT32, "n": dtype, "z": dtype}))
        args = [ArgSpec("x", FLOAT32), ArgSpec("n", dtype, number=True, converts=False), ArgSpec("z", dtype, True)]
        run = make(executable, args, Fallback(), "copy")
        assert all((run(A, value) == value).all() for value in good)
        assert all(run(A, value) == "fallback" for value in bad)


SCALARS = (BOOL, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, FLOAT16, FLOAT32, FLOAT64)


def patterns(dtype: DType) -> np.ndarray:
    """Values of a dtype: all of 16 bits and less, some of the others."""
    if dtype.kind == "bool":
        return np.array([False, True])
    if dtype.bits <= 16:
        return np.arange(1 << dtype.bits, dtype=f"u{dtype.nbytes}").view(dtype.numpy)[::37]
    if dtype.is_integer:
        info = np.iinfo(dtype.numpy)
        return np.array([info.min, info.min + 1, 0, 1, 77, info.max - 1, info.max], dtype.numpy)
    info = np.finfo(dtype.numpy)
    edges = [0.0, -0.0, 1.5, info.max, info.min, info.tiny, info.smallest_subnormal, np.inf, -np.inf, np.nan, 1 / 3]
    return np.array(edges, dtype.numpy)


@pytest.mark.parametrize("source", SCALARS, ids=str)
@pytest.mark.parametrize("target", [FLOAT32, FLOAT64, INT32, UINT64, INT8], ids=str)
def test_numpys_scalars_convert_as_pythons_numbers_do(source: DType, target: DType) -> None:
    run = entry([("n", "z")], {"x": FLOAT32, "n": target, "z": target})
    x = A[:1]
    for value in patterns(source):
        expected = run(x, value.item())
        found = run(x, value)
        assert type(found) is type(expected)
        if isinstance(found, np.ndarray):
            np.testing.assert_array_equal(found.view(f"u{target.nbytes}"), expected.view(f"u{target.nbytes}"))


@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64, INT64, UINT64, INT8, BOOL], ids=str)
def test_scalars_whose_dtype_counts_are_those_of_it_alone(dtype: DType) -> None:
    executable = engine.compile(copy_kernel([("n", "z")], {"x": FLOAT32, "n": dtype, "z": dtype}))
    args = [ArgSpec("x", FLOAT32), ArgSpec("n", dtype, number=True, takes="NumPy"), ArgSpec("z", dtype, True)]
    run = make(executable, args, Fallback(), "copy")
    for other in SCALARS:
        for value in patterns(other)[:7]:
            found = run(A[:1], value)
            if other is dtype:
                assert found.tobytes() == value.tobytes()
            else:
                assert found == "fallback"
    for value in (1, 1.0, True, 1j, np.array(1, dtype.numpy), np.longdouble(1), np.str_("1")):
        assert run(A[:1], value) == "fallback"
    assert run(A[:1], type("Sub", (np.float64,), {})(1)) == "fallback"
    python = make(
        executable,
        [args[0], replace(args[1], takes="float" if dtype.kind == "float" else "int"), args[2]],
        Fallback(),
        "copy",
    )
    assert all(python(A[:1], value) == "fallback" for other in SCALARS for value in patterns(other)[:3])


def test_outputs_that_are_read_start_as_zeros_unless_they_are_given() -> None:
    run = entry([("x", "z")], {"x": FLOAT32, "z": FLOAT32, "zz": FLOAT32}, zeroed=("zz",))
    np.full(24, 7, np.float32)  # memory that is freed with something in it
    for size in (24, memory.LARGE):
        x = np.arange(size, dtype=np.float32)
        z, zz = run(x)
        assert (z == x).all()
        assert not zz.any()
    given = A.copy()
    assert run(A, A.copy(), given)[1] is given
    assert (given == A).all()


# --- raw arrays ------------------------------------------------------------------------------------------------------


def test_raw_arrays_have_their_own_length() -> None:
    dtypes = {"x": FLOAT32, "r": FLOAT32, "z": FLOAT32, "zz": INT64}
    run = entry([("r", "z"), ("#r", "zz")], dtypes, raw=frozenset({"r"}))
    z, length = run(A, np.full(7, 3, np.float32))
    assert (z == 3).all()
    assert (length == 7).all()
    assert run(A, np.ones((2, 2), np.float32)) == "fallback"
    assert run(A, np.ones(0, np.float32)) == "fallback"
    assert run(A, np.ones(14, np.float32)[::2]) == "fallback"
    x = A.copy()
    assert run(x, x, x, np.zeros(24, np.int64)) == "fallback", "a raw input that is also the output"


# --- what goes to the fallback ---------------------------------------------------------------------------------------


class Subclass(np.ndarray):
    pass


def read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def unaligned() -> np.ndarray:
    return np.zeros(97, np.uint8)[1:].view(np.float32)


BAD_INPUTS = [
    A[::2],
    A.reshape(4, 6).T,
    A.astype(np.float64),
    A.astype(">f4"),
    A.astype(np.int32),
    np.float32(1),
    np.zeros((), np.float32),
    np.zeros(0, np.float32),
    np.zeros((3, 0), np.float32),
    np.broadcast_to(A[:1], (24,)),
    A.view(Subclass),
    np.ma.masked_array(A),
    unaligned(),
    [1.0],
    1.0,
    None,
    "text",
    object(),
]


@pytest.mark.parametrize("bad", BAD_INPUTS, ids=lambda bad: type(bad).__name__)
def test_anything_but_plain_arrays_goes_to_the_fallback(bad: object) -> None:
    fallback = Fallback()
    run = entry([("x", "z")], {"x": FLOAT32, "y": FLOAT32, "z": FLOAT32}, fallback=fallback)
    for args in ((bad, A), (A, bad), (bad, bad), (A, A, bad)):
        assert run(*args) == "fallback"
        assert all(a is b for a, b in zip(fallback.calls[-1][0], args, strict=True))


def test_outputs_that_cannot_be_written_plainly_go_to_the_fallback() -> None:
    run, row = entry(*SIMPLE), A.reshape(1, 24)
    warns = np.broadcast_arrays(A, row)[0]
    assert warns.flags.c_contiguous
    for z in (read_only(row.copy()), row[:, :23].copy(), A.copy(), np.zeros((1, 24)), unaligned()[None], warns):
        assert run(row, z) == "fallback"


def test_wrong_counts_and_keywords_go_to_the_fallback() -> None:
    fallback = Fallback()
    run = entry(*SIMPLE, fallback=fallback)
    assert run() == run(A, A.copy(), A) == run(A, out=None) == run(x=A) == "fallback"
    assert fallback.calls[2][1] == {"out": None}
    assert fallback.calls[3][1].keys() == {"x"}


def test_the_only_output_may_come_by_its_name() -> None:
    fallback = Fallback()
    run, z = entry(*SIMPLE, fallback=fallback, keyword=True), np.zeros_like(A)
    assert run(A, out=z) is z
    np.testing.assert_array_equal(z, A)
    calls = [((A, z), {"out": z}), ((), {"out": z}), ((A,), {"z": z}), ((A,), {"out": None}), ((A,), {"out": (z,)})]
    calls += [((A,), {"out": A[1:]}), ((A,), {"out": z, "x": A}), ((A,), {"outs": z})]
    for args, named in calls:
        assert run(*args, **named) == "fallback"
    assert [named for _, named in fallback.calls] == [named for _, named in calls]
    two = entry([("x", "z"), ("x", "zz")], {"x": FLOAT32, "z": FLOAT32, "zz": FLOAT32}, keyword=True)
    assert two(A, out=z) == "fallback"


@given(st.integers(-30, 30), st.integers(-30, 30))
def test_overlapping_arrays_are_never_taken_for_separate(left: int, right: int) -> None:
    memory_ = np.zeros(200, np.float32)
    x, y, z = (memory_[at : at + 24] for at in (100, 100 + left, 100 + right))
    result = entry([("x", "z")], {"x": FLOAT32, "y": FLOAT32, "z": FLOAT32})(x, y, z)
    harmless = all(abs(distance) >= 24 or distance == 0 for distance in (right, right - left))
    assert (result is z) == harmless


def test_two_outputs_or_widths_in_the_same_memory_go_to_the_fallback() -> None:
    two = entry([("x", "z"), ("x", "zz")], {"x": FLOAT32, "z": FLOAT32, "zz": FLOAT32})
    z = A.copy()
    assert two(A, z, z) == "fallback"
    wide = entry([("x", "z")], {"x": INT64, "z": INT64, "zz": INT32})
    block = np.zeros(24, np.int64)
    assert wide(block, np.zeros(24, np.int64), block.view(np.int32)[:24]) == "fallback"


def test_limits_are_kept() -> None:
    assert entry(*SIMPLE, limit=23)(A) == "fallback"
    assert entry(*SIMPLE, limit=24)(A) is not None
    assert entry(*SIMPLE, ndim=1)(A.reshape(4, 6)) == "fallback"
    assert (entry(*SIMPLE, ndim=2)(A.reshape(4, 6)) == A.reshape(4, 6)).all()
    assert entry(*SIMPLE, allocates=False)(A) == "fallback"


def test_an_exception_of_the_fallback_passes_through() -> None:
    def fail(*args: object) -> None:
        raise LookupError(len(args))

    with pytest.raises(LookupError, match="1"):
        entry(*SIMPLE, fallback=fail)(None)


@pytest.mark.parametrize(
    "change",
    [
        lambda kernel: replace(kernel, layout=replace(kernel.layout, ndim=2)),
        lambda kernel: replace(kernel, layout=replace(kernel.layout, steps=(("x", (Step.ANY,)), ("z", (Step.UNIT,))))),
        lambda kernel: replace(kernel, layout=replace(kernel.layout, aligned=64)),
        lambda kernel: replace(kernel, layout=replace(kernel.layout, steps=())),
        lambda kernel: replace(kernel, slots=kernel.slots * MOST_SLOTS),
    ],
)
def test_kernels_that_need_more_have_no_native_entry(change: Callable[[Kernel], Kernel]) -> None:
    fallback = Fallback()
    executable = replace(engine.compile(copy_kernel(*SIMPLE)), kernel=change(copy_kernel(*SIMPLE)))
    args = [ArgSpec("x", FLOAT32), ArgSpec("z", FLOAT32, True)]
    assert make(executable, args, fallback, "copy") is fallback
    half = [ArgSpec("n", FLOAT16, number=True), *args]
    assert make(engine.compile(copy_kernel(*SIMPLE)), half, fallback, "copy") is fallback


# --- nothing leaks, nothing crashes ----------------------------------------------------------------------------------


def test_calls_leave_every_reference_count_as_it_was() -> None:
    names = {"x": FLOAT32, "n": FLOAT32, "z": FLOAT32, "zz": FLOAT32}
    pairs, forms = [("x", "z"), ("n", "zz")], ("outputs", "tuple", "nothing")
    runs = [entry(pairs, names, fallback=lambda *args: len(args), returns=form) for form in forms]
    z, zz, bad, number = A.copy(), A.copy(), A[::2], 1.25
    large = np.zeros(memory.LARGE // 4, np.float32)
    exact = (A, z, zz, bad, number, large, *runs)
    drifting = (A.dtype, None, True, np.ndarray)  # anything that Python does moves these by a few
    gc.collect()
    before, about = ([sys.getrefcount(each) for each in group] for group in (exact, drifting))
    for turn in range(1000):
        for run in runs:
            run(A if turn % 10 else large, number)
            run(A, number, z, zz)
            run(A, bad)
            run(bad, 1)
            run(A, z, zz)
    del run
    assert [sys.getrefcount(each) for each in exact] == before
    assert [sys.getrefcount(each) for each in drifting] == pytest.approx(about, abs=300)


def test_outputs_are_freed_when_dropped() -> None:
    run = entry(*SIMPLE)
    z = run(A)
    assert sys.getrefcount(z) == 2
    gone = weakref.ref(z)
    del z
    assert gone() is None


def test_an_entry_keeps_alive_what_it_needs_and_frees_it() -> None:
    fallback = Fallback()
    run = entry(*SIMPLE, fallback=fallback)
    watched = weakref.ref(fallback)
    del fallback
    gc.collect()
    assert run(None) == "fallback"
    assert (run.__name__, run.__module__, run.__doc__) == ("copy", "fusec", None)
    del run
    gc.collect()
    assert watched() is None


def test_cycles_through_an_entry_are_collected() -> None:
    fallback = Fallback()
    fallback.entry = entry(*SIMPLE, fallback=fallback)  # type: ignore[attr-defined]
    watched = weakref.ref(fallback)
    del fallback
    gc.collect()
    assert watched() is None


def test_entries_chain() -> None:
    double = entry([("x", "z")], {"x": FLOAT64, "z": FLOAT64})
    both = entry(*SIMPLE, fallback=double)
    assert both(A).dtype == np.float32
    assert both(A.astype(np.float64)).dtype == np.float64
    assert both(None) == "fallback"


def strange_objects(rng: random.Random) -> list[object]:
    return [
        *BAD_INPUTS,
        A,
        A.copy(),
        A.reshape(2, 12),
        np.zeros((2,) * 32, np.bool_)[(0,) * 20],
        np.recarray((24,), [("f", "f4")]),
        np.zeros(24, "f4,f4"),
        np.zeros(24, object),
        np.zeros(24, "U3"),
        np.zeros(24, "M8[s]"),
        rng.random(),
        rng.getrandbits(rng.randrange(1, 200)),
        -rng.getrandbits(63),
        float("nan"),
        fractions.Fraction(1, 3),
        type,
        np.ndarray,
        sys,
        (),
        {},
        b"\0" * 100,
        1j,
        Ellipsis,
        np.float32(2),
        np.float64(2),
        np.bool_(1),
        True,
    ]


def test_no_combination_of_objects_crashes() -> None:
    rng = random.Random(5)
    dtypes = {"x": FLOAT32, "n": FLOAT64, "r": FLOAT32, "nn": INT32, "z": FLOAT32, "zz": FLOAT64}
    run = entry([("x", "z"), ("n", "zz")], dtypes, raw=frozenset({"r"}))
    taken = 0
    for _ in range(30):
        objects = strange_objects(rng)
        plain: list[list[object]] = [[A], [1.5, 2, True], [A], [3], [A.copy()], [np.zeros(24)]]
        for _ in range(100):
            count = rng.choice([3, 4, 5, 6, 6, 4])
            args = [rng.choice(objects if rng.random() < 0.2 else plain[at % 6]) for at in range(count)]
            keywords = {"size": 3} if rng.random() < 0.05 else {}
            taken += run(*args, **keywords) != "fallback"
    assert taken > 100
