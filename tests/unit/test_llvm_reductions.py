"""Reductions along the last axis on the CPU: the bits of the oracle, for every width of vectors and way to part it."""

import functools
import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

from fusec import passes
from fusec.base.dtypes import FLOAT32, FLOAT64, INT8, INT64
from fusec.base.records import replace
from fusec.codegen.llvm import LlvmOptions, generate_reduction, row
from fusec.ir.expr import apply, convert
from fusec.ir.graph import Input, KernelGraph, Reduce
from fusec.ir.interpret_reductions import interpret_reduction
from fusec.ir.loops import Local
from fusec.ir.reductions import OneAxis
from fusec.passes.expand import expand
from fusec.passes.lower_graph_reductions import lower_graph_reductions
from fusec.passes.phases import first_phase, in_role
from fusec.passes.reductions import run_on_reduction
from tests.support import reduction_examples as examples
from tests.support.llvm_check import same_bits
from tests.support.llvm_runner import fresh_symbol, layout_of, run

EXAMPLES = {
    "sum": (examples.simple("add", FLOAT32), {"x": "f4"}, {"z": "f4"}),
    "sum64": (examples.simple("add", FLOAT64), {"x": "f8"}, {"z": "f8"}),
    "small": (examples.simple("add", INT8, INT64), {"x": "i1"}, {"z": "i8"}),
    "dot": (examples.dot(FLOAT64), {"x": "f8", "y": "f8"}, {"z": "f8"}),
    "extremes": (examples.extremes(FLOAT32), {"x": "f4"}, {"low": "f4", "high": "f4"}),
    "argmin": (examples.argmin(FLOAT32), {"x": "f4", "at": "i8"}, {"value": "f4", "where": "i8"}),
    "spread": (examples.spread(), {"x": "f4"}, {"z": "f8"}),
}
COUNTS = (1, 2, 15, 16, 17, 33, 63, 64, 65, 100, 127, 128, 129, 200, 256, 1000, 4095, 4096)


def values(names, shape, seed=0):
    rng = np.random.default_rng(seed)
    made = {name: (rng.integers(-50, 50, shape) * rng.choice([1, 0.37], shape)) for name in names}
    if "at" in made:
        made["at"] = np.broadcast_to(np.arange(shape[-1]), shape)
    return {name: made[name].astype(dtype) for name, dtype in names.items()}


def kernel_of(reduction, layout, bits, axis=1):
    program = run_on_reduction(reduction, lambda each: passes.run(each, check=True))
    return generate_reduction(program, layout, axis, LlvmOptions(vector_bits=bits, symbol=fresh_symbol(reduction.name)))


@pytest.mark.parametrize("bits", [512, 256, 128, 0])
@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.sampled(5)
def test_rows_give_the_bits_of_the_oracle(name, bits):
    reduction, names, outputs = EXAMPLES[name]
    expanded = run_on_reduction(reduction, expand)
    kernel = None
    for count in COUNTS:
        shape = (3, count)
        given = values(names, shape, count)
        expected, found = ({o: np.zeros((3, 1), d) for o, d in outputs.items()} for _ in range(2))
        views = {o: each[:, 0] for o, each in expected.items()}
        interpret_reduction(expanded, {**given, **views}, {}, OneAxis(shape, 1))
        if kernel is None:
            arrays = {**values(names, (3, 50)), **found}
            kernel = kernel_of(reduction, layout_of(reduction, arrays, (3, 50)), bits)
        run(kernel, reduction, {**given, **found}, {}, shape, cuts=(1,), positions=3)
        for output in outputs:
            assert expected[output].tobytes() == found[output].tobytes(), (output, count)


@pytest.mark.parametrize("name", ["sum", "argmin", "spread"])
@pytest.mark.parametrize("count", [8191, 8192, 8193, 20000])
def test_chunks_of_long_rows_are_those_of_the_oracle(name, count):
    reduction, names, _ = EXAMPLES[name]
    first = first_phase(reduction)
    expanded = run_on_reduction(first, expand)
    chunk = 64 * reduction.lanes
    chunks = -(-count // chunk)
    given = values(names, (2, count))
    parts = {param.name: param.dtype.numpy for param in first.arrays if param.written}
    expected, found = ({part: np.zeros((2, chunks), dtype) for part, dtype in parts.items()} for _ in range(2))
    for number in range(chunks):
        here = {each: array[:, number * chunk : (number + 1) * chunk] for each, array in given.items()}
        views = {part: each[:, number] for part, each in expected.items()}
        interpret_reduction(expanded, {**here, **views}, {}, OneAxis(here["x"].shape, 1))
    kernel = kernel_of(first, layout_of(first, {**given, **found}, (2, count)), 512)
    for low, high in itertools.pairwise([0, 1, chunks, 2 * chunks - 1, 2 * chunks]):
        run(kernel, first, {**given, **found}, {}, (2, count), cuts=(low,), positions=high)
    for part in parts:
        assert expected[part].tobytes() == found[part].tobytes()


@pytest.mark.parametrize("bits", [512, 128])
def test_strides_and_broadcast_operands(bits):
    reduction = examples.dot(FLOAT64)
    expanded = run_on_reduction(reduction, expand)
    rng = np.random.default_rng(3)
    wide = rng.normal(size=(4, 2000))
    for given in (
        {"x": wide[:, ::-2], "y": wide[::-1, :1000]},
        {"x": rng.normal(size=(4, 1)), "y": wide[:, 1000:]},
        {"x": rng.normal(size=(4, 1)), "y": rng.normal(size=(1, 1))},
        {"x": np.asfortranarray(wide[:, :1000]), "y": wide[:1, :1000]},
    ):
        shape = (4, 1000)
        expected, found = np.zeros((4, 1)), np.zeros((4, 1))
        interpret_reduction(expanded, {**given, "z": expected[:, 0]}, {}, OneAxis(shape, 1))
        kernel = kernel_of(reduction, layout_of(reduction, {**given, "z": found}, shape), bits)
        run(kernel, reduction, {**given, "z": found}, {}, shape, positions=4)
        assert expected.tobytes() == found.tobytes()


@pytest.mark.parametrize("bits", [512, 256, 0])
@pytest.mark.parametrize("count", [1, 17, 128, 1000])
def test_softmax_is_one_kernel(bits, count):
    reduction = examples.softmax()
    x = np.random.default_rng(count).normal(size=(5, count)).astype("f4")
    expected, found = np.zeros_like(x), np.zeros_like(x)
    interpret_reduction(run_on_reduction(reduction, expand), {"x": x, "y": expected}, {}, OneAxis(x.shape, 1))
    kernel = kernel_of(reduction, layout_of(reduction, {"x": x, "y": found}, x.shape), bits)
    run(kernel, reduction, {"x": x, "y": found}, {}, x.shape, cuts=(2,), positions=5)
    assert expected.tobytes() == found.tobytes()


@pytest.mark.parametrize("bits", [512, 256, 0])
@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.sampled(5)
def test_columns_give_the_bits_of_the_oracle(name, bits):
    reduction, names, outputs = EXAMPLES[name]
    expanded = run_on_reduction(reduction, expand)
    some = {each: np.ascontiguousarray(array) for each, array in values(names, (2, 5, 7)).items()}
    results = {output: np.zeros((2, 5, 7), dtype) for output, dtype in outputs.items()}
    kernel = kernel_of(reduction, layout_of(reduction, {**some, **results}, (2, 5, 7)), bits)
    for rows, columns in itertools.product((1, 2, 5, 6, 63, 64), (1, 15, 16, 40)):
        shape = (2, rows, columns)
        given = {each: np.ascontiguousarray(array) for each, array in values(names, shape, rows).items()}
        expected, found = ({o: np.zeros((2, 1, columns), d) for o, d in outputs.items()} for _ in range(2))
        views = {o: each[:, 0] for o, each in expected.items()}
        interpret_reduction(expanded, {**given, **views}, {}, OneAxis(shape, 1))
        run(kernel, reduction, {**given, **found}, {}, shape, cuts=(columns // 3,), positions=2 * columns)
        for output in outputs:
            assert expected[output].tobytes() == found[output].tobytes(), (output, rows, columns)


def first_parts(reduction, given, axis):
    """The results of chunks of 64 elements along an axis, as the oracle finds them, and room for those of a kernel."""
    first = first_phase(reduction)
    expanded, shape = run_on_reduction(first, expand), list(given["x"].shape)
    shape[axis] = -(-shape[axis] // 64)
    parts = {param.name: param.dtype.numpy for param in first.arrays if param.written}
    expected, found = ({part: np.zeros(shape, dtype) for part, dtype in parts.items()} for _ in range(2))
    for number in range(shape[axis]):
        here = {
            each: array[(slice(None),) * axis + (slice(number * 64, number * 64 + 64),)]
            for each, array in given.items()
        }
        views = {part: each.take(number, axis) for part, each in expected.items()}
        interpret_reduction(expanded, {**here, **views}, {}, OneAxis(here["x"].shape, axis, is_last=False))
        for part, each in views.items():
            expected[part][(slice(None),) * axis + (number,)] = each
    return first, expected, found


@pytest.mark.parametrize("name", ["sum", "argmin", "spread"])
@pytest.mark.parametrize(("rows", "columns"), [(65, 5000), (128, 5000), (300, 5000), (777, 7), (1280, 16), (2000, 40)])
@pytest.mark.sampled(5)
def test_chunks_of_columns_are_those_of_the_oracle(name, rows, columns):
    reduction, names, _ = EXAMPLES[name]
    given = values(names, (rows, columns))
    first, expected, found = first_parts(reduction, given, 0)
    chunks = -(-rows // 64)
    kernel = kernel_of(first, layout_of(first, {**given, **found}, (rows, columns), c_order=False), 512, axis=0)
    cuts = (1, columns + 7, chunks * columns - columns - 1)
    run(kernel, first, {**given, **found}, {}, (rows, columns), cuts=cuts, positions=chunks * columns)
    for part, each in expected.items():
        assert each.tobytes() == found[part].tobytes()


@pytest.mark.parametrize(
    ("name", "bits"), [*((name, 512) for name in EXAMPLES), ("dot", 256), ("argmin", 256), ("sum", 128), ("sum", 0)]
)
def test_rows_side_by_side_give_the_bits_of_the_oracle(name, bits):
    reduction, names, outputs = EXAMPLES[name]
    expanded, kernel = run_on_reduction(reduction, expand), None
    for rows, columns, between in (
        (2, 100, 0),
        (3, 40, 0),
        (4, 33, 0),
        (7, 700, 0),
        (17, 2, 0),
        (64, 100, 0),
        (3, 50, 3),
    ):
        given = {each: array.swapaxes(0, 1)[:rows] for each, array in values(names, (columns, rows + between)).items()}
        if kernel is None:
            some = {output: np.zeros((1, columns), dtype) for output, dtype in outputs.items()}
            kernel = kernel_of(reduction, layout_of(reduction, {**given, **some}, (rows, columns)), bits, axis=0)
        expected, found = ({o: np.zeros((1, columns), d) for o, d in outputs.items()} for _ in range(2))
        views = {o: each[0] for o, each in expected.items()}
        interpret_reduction(expanded, {**given, **views}, {}, OneAxis((rows, columns), 0, is_last=False))
        run(kernel, reduction, {**given, **found}, {}, (rows, columns), cuts=(columns // 3,), positions=columns)
        for output in outputs:
            assert expected[output].tobytes() == found[output].tobytes(), (rows, columns, between)


@pytest.mark.parametrize(
    ("dtype", "bits"), [(FLOAT32, 512), (FLOAT64, 512), (FLOAT64, 256), (FLOAT32, 128), (FLOAT32, 0)]
)
def test_results_side_by_side_are_stored_where_they_belong(dtype, bits):
    """Nothing between them is written."""
    reduction, kind = powers(dtype), dtype.numpy
    expanded, kernel = run_on_reduction(reduction, expand), None
    for rows, columns, between in ((1, 45, 0), (2, 45, 0), (3, 60, 0), (5, 45, 0), (12, 3, 0), (64, 45, 0), (3, 16, 2)):
        x = np.random.default_rng(rows).normal(size=(columns, rows)).astype(kind).T
        expected, found = ({name: np.full((columns, rows + between), 7, kind) for name in "yz"} for _ in range(2))
        totals = [np.zeros((1, columns), kind) for _ in range(2)]
        views = {name: each[:, :rows].T for name, each in expected.items()}
        interpret_reduction(expanded, {"x": x, **views, "s": totals[0][0]}, {}, OneAxis(x.shape, 0, is_last=False))
        places = {"x": x, **{name: each[:, :rows].T for name, each in found.items()}, "s": totals[1]}
        if kernel is None:
            wide = {each: np.zeros((columns, 5), kind).T for each in "xyz"}
            kernel = kernel_of(reduction, layout_of(reduction, {**places, **wide}, (5, columns)), bits, axis=0)
        run(kernel, reduction, places, {}, x.shape, cuts=(1,), positions=columns)
        for one, other in (*zip(expected.values(), found.values(), strict=True), totals):
            assert one.tobytes() == other.tobytes(), (rows, columns, between)


def columns_of_many_inputs():
    """The text of a reduction down columns of several inputs, the addresses of whose rows differ."""
    inputs = tuple(Input(name, FLOAT64) for name in "abcdefgh")
    total = Reduce("add", functools.reduce(functools.partial(apply, "add"), inputs), FLOAT64)
    program = run_on_reduction(lower_graph_reductions(KernelGraph("sum", inputs, (("z", total),))), passes.run)
    arrays = {**{each.name: np.zeros((50, 40)) for each in inputs}, "z": np.zeros((1, 40))}
    return generate_reduction(program, layout_of(program, arrays, (50, 40)), 0).source


def test_texts_do_not_depend_on_the_order_of_sets():
    """Sets of names run in the order of their hashes, which differs from process to process."""
    program = f"from {__name__} import columns_of_many_inputs as text; print(text())"
    texts = {
        subprocess.check_output([sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, text=True)
        for seed in ("1", "2")
    }
    assert len(texts) == 1


def powers(dtype):
    """Powers, which one output holds between walks and two need, and their total."""
    x = Input("x", dtype)
    power = apply("exp", apply("subtract", x, Reduce("maximum", x, dtype)))
    total = Reduce("add", power, dtype)
    outputs = (("y", apply("divide", power, total)), ("z", apply("sqrt", power)), ("s", total))
    return lower_graph_reductions(KernelGraph("powers", (x,), outputs))


@pytest.mark.parametrize(("dtype", "bits"), [(FLOAT32, 512), (FLOAT64, 512), (FLOAT32, 256), (FLOAT32, 0)])
def test_rows_kept_on_the_stack_or_in_the_output_give_the_same_bits(dtype, bits, monkeypatch):
    """Rows too long for the stack, short ones, ones that begin anywhere in a line, and outputs that lie on inputs."""
    monkeypatch.setattr(row, "_KEPT", 4096)
    reduction, kind = powers(dtype), dtype.numpy
    expanded, kernel = run_on_reduction(reduction, expand), None
    for count, offset, beside in itertools.product((100, 1, 128, 259, 512, 1030), (0, 3), (0, 1)):
        space = np.zeros((3, 4 * count + 64), kind)
        x = np.random.default_rng(count).normal(size=(4, count)).astype(kind)
        expected = {name: np.zeros((4, width), kind) for name, width in (("y", count), ("z", count), ("s", 1))}
        views = {**expected, "s": expected["s"][:, 0]}
        interpret_reduction(expanded, {"x": x, **views}, {}, OneAxis(x.shape, 1))
        places = zip("xyz", (0, offset, offset + beside), space, strict=True)
        found = {name: line[at : at + 4 * count].reshape(4, count) for name, at, line in places}
        found["s"] = np.zeros((4, 1), kind)
        if beside:
            found["y"] = found["x"]
        found["x"][...] = x
        if kernel is None:
            kernel = kernel_of(reduction, layout_of(reduction, found, (4, 50), streaming=True), bits)
            assert kernel.source.count("!nontemporal") == (2 if bits == 512 else 0)
        run(kernel, reduction, found, {}, x.shape, cuts=(1,), positions=4)
        for name, each in expected.items():
            assert each.tobytes() == found[name].tobytes(), (name, count, offset, beside)


@pytest.mark.parametrize(("dtype", "bits"), [(FLOAT32, 512), (FLOAT64, 512), (FLOAT32, 256), (FLOAT64, 256)])
@pytest.mark.parametrize("op", ["minimum", "maximum", "both"])
@pytest.mark.sampled(3)
def test_extremes_of_all_kinds_of_floats(op, dtype, bits):
    """Zeros of both signs are told apart, infinities are ordinary, and any nan wins, whatever its sign and payload."""
    reduction, kind = examples.extremes(dtype) if op == "both" else examples.simple(op, dtype), dtype.numpy
    outputs = ["low", "high"] if op == "both" else ["z"]
    info = np.finfo(kind)
    numbers = [0.0, 1.0, np.inf, info.max, info.smallest_subnormal, np.nan]
    some = np.asarray([*numbers, *np.negative(numbers)], kind)
    least = np.asarray(some.view(f"i{kind.itemsize}")[[2, 8]] + 1).view(kind)  # the nans next to infinity
    some = np.concatenate([some, least])
    pairs = np.asarray(list(itertools.product(some, some)), kind)
    long = np.random.default_rng(1).choice(some[np.isfinite(some)], (len(some) * 2, 333))
    long[len(some) :], long[:, 40] = some[7], np.tile(some, 2)
    expanded = run_on_reduction(reduction, expand)
    for axis, given in ((0, pairs), (0, long[:, :60]), (1, pairs), (1, long)):
        x = np.ascontiguousarray(given.T) if axis == 0 else given
        expected, found = ({output: np.zeros(len(given), kind) for output in outputs} for _ in range(2))
        interpret_reduction(expanded, {"x": x, **expected}, {}, OneAxis(x.shape, axis, is_last=axis == 1))
        places = {"x": x, **{output: each[:, None] if axis else each[None] for output, each in found.items()}}
        kernel = kernel_of(reduction, layout_of(reduction, places, x.shape), bits, axis)
        assert "fcmp" not in kernel.source or (dtype, bits) == (FLOAT64, 256)
        run(kernel, reduction, places, {}, x.shape, cuts=(1,), positions=len(given))
        for output in outputs:
            assert same_bits(expected[output], found[output])
            assert np.array_equal(np.isnan(found[output]), np.isnan(given).any(1))


def test_softmax_along_columns():
    reduction = examples.softmax()
    x = np.random.default_rng(1).normal(size=(60, 21)).astype("f4")
    expected, found = np.zeros_like(x), np.zeros_like(x)
    interpret_reduction(
        run_on_reduction(reduction, expand), {"x": x, "y": expected}, {}, OneAxis(x.shape, 0, is_last=False)
    )
    kernel = kernel_of(reduction, layout_of(reduction, {"x": x, "y": found}, x.shape), 512, axis=0)
    run(kernel, reduction, {"x": x, "y": found}, {}, x.shape, cuts=(2,), positions=21)
    assert expected.tobytes() == found.tobytes()


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("role", ["whole", "first"])
def test_memory_is_asked_for_where_a_processor_does_not_see_what_is_next(role, axis):
    """Of two walks along long rows, and of all walks over columns; never of elements far from each other."""
    for name in ("sum", "spread"):
        reduction, names, _ = EXAMPLES[name]
        part = in_role(reduction, role)
        stores = {param.name: np.zeros((1, 90), param.dtype.numpy) for param in part.arrays if param.written}
        stores = {each: array[:, :1] if axis else array for each, array in stores.items()}
        for step, bits in ((1, 512), (2, 512), (1, 0)):
            given = {each: np.repeat(array, step, -1)[:, ::step] for each, array in values(names, (3, 90)).items()}
            layout = layout_of(part, {**given, **stores}, (3, 90))
            asks = "@llvm.prefetch" in kernel_of(part, layout, bits, axis).source
            assert asks == (step == 1 and (name == "spread" and role == "first" if axis else bits > 0))


@pytest.mark.parametrize("streaming", [False, True])
def test_the_next_row_is_asked_for_before_stores_around_the_caches(streaming):
    x = np.ones((3, 700), "f4")
    layout = layout_of(examples.softmax(), {"x": x, "y": np.zeros_like(x)}, x.shape, streaming=streaming)
    source = kernel_of(examples.softmax(), layout, 512).source
    assert source.count("call void @llvm.prefetch") == (8 if streaming else 0)  # a round's lines, in one walk of two


def test_a_wide_total_does_not_narrow_the_vectors_of_its_elements():
    arrays = {"x": np.ones((3, 50), "f4"), "z": np.zeros((3, 1))}
    usual = examples.simple("add", FLOAT32)
    stored = examples.store("z", apply("sqrt", convert(Local("total", FLOAT32), FLOAT64)), FLOAT64)
    wide = replace(usual, params=(usual.params[0], replace(usual.params[1], dtype=FLOAT64)), finish=(stored,))
    assert kernel_of(wide, layout_of(wide, arrays, (3, 50)), 512).lanes == 16
    summed = examples.simple("add", FLOAT32, FLOAT64)
    assert kernel_of(summed, layout_of(summed, arrays, (3, 50)), 512).lanes == 8
