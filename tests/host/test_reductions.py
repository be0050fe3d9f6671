"""Reductions as emitted for GPUs: on fibers, in PTX and as Metal, each with the bits of the oracle."""

import re
from collections import Counter
from math import gcd

import cuda_in_ptx
import cuda_on_host
import metal_on_host
import numpy as np
import ptx
import pytest
from guarded import KernelFault
from reduction_runs import Reduced, Texts, assert_bits, called, reduced, run_in_ptx

import fusec
from fusec.base import dtypes
from fusec.base.dtypes import FLOAT32, FLOAT64, INT8, INT64
from fusec.codegen import cuda, metal
from fusec.codegen.c_family import rows
from fusec.ir import loops as ir
from fusec.ir.expr import apply
from fusec.ir.graph import Input, KernelGraph, Reduce, Spread, TotalInput
from fusec.ir.loops import GROUP
from fusec.ir.walk import expressions, roots_of
from fusec.kinds.launch import CLUSTERS
from fusec.library.graph_kernel import GraphKernel
from fusec.library.normalisation import layer_norm_kernel, log_softmax_kernel, softmax_kernel
from fusec.passes.held_elements import held_bytes
from tests.support import reduction_examples as examples

EXAMPLES = {
    "sum": (examples.simple("add", FLOAT32), {"x": "f4"}),
    "sum64": (examples.simple("add", FLOAT64), {"x": "f8"}),
    "small": (examples.simple("add", INT8, INT64), {"x": "i1"}),
    "dot": (examples.dot(FLOAT64), {"x": "f8", "y": "f8"}),
    "extremes": (examples.extremes(FLOAT32), {"x": "f4"}),
    "argmin": (examples.argmin(FLOAT32), {"x": "f4", "at": "i8"}),
    "spread": (examples.spread(), {"x": "f4"}),
    "softmax": (examples.softmax(), {"x": "f4"}),
    "scores": (examples.softmax(is_of_products=True), {"x": "f4", "w": "f4"}),
}
WHOLE = {"softmax", "scores"}  # which have no total
WIDE = {"sum64", "dot", "spread"}  # which need float64


def values(names, shape, axis, seed=0):
    rng = np.random.default_rng(seed)
    made = {name: rng.integers(-50, 50, shape) * rng.choice([1, 0.37], shape) for name in names}
    if "at" in made:
        steps = np.arange(shape[axis]).reshape([-1 if each == axis else 1 for each in range(len(shape))])
        made["at"] = np.broadcast_to(steps, shape)
    return {name: np.ascontiguousarray(made[name].astype(dtype)) for name, dtype in names.items()}


def case(name, shape, axis) -> Reduced:
    reduction, names = EXAMPLES[name]
    return reduced(f"{name} of {shape} along {axis}", reduction, values(names, shape, axis), shape, (axis,))


def sizes(name):
    """Sizes around the boundaries of lanes, rounds and chunks; what has no total is one chunk."""
    lanes = EXAMPLES[name][0].lanes
    last = [1, 2, 31, 33, lanes - 1, lanes, lanes + 1, 3 * lanes + 5, 64 * lanes]
    return last if name in WHOLE else [*last, 64 * lanes + 1]


def cases(names, all_sizes=False):
    found = []
    for name in names:
        chosen = sizes(name) if all_sizes else [33, 3 * EXAMPLES[name][0].lanes + 5]
        found += [case(name, (2, count), 1) for count in chosen]
        columns = [1, 63, 64] if name in WHOLE else [1, 63, 64, 65, 4100] if all_sizes else [5, 65]
        found += [case(name, (count, 3), 0) for count in columns if count <= 64 or name not in WHOLE]
    return found


SUM = fusec.ReductionKernel("T x", "T z", "x", "a + b", "z = a", "0", "total")
MANY = fusec.ReductionKernel(
    "T x, T y", "T z, bool any", "(x - y) * (x + y)", "a + b", "z = a; any = a != (T)0", "0", "many"
)
COUNT = fusec.ReductionKernel("bool x", "int64 z", "(long long)x", "a + b", "z = a", "0", "count")
PLACE = fusec.ReductionKernel(
    "T x", "T least, int64 at", "Least{x, _J}",
    "a.value < b.value || (a.value == b.value && a.at < b.at) ? a : b", "least = a.value; at = a.at", None, "place",
    "Least", preamble="struct Least { float value; long long at; };",
)  # fmt: skip
GATHER = fusec.ReductionKernel("raw T x, int64 at", "T z", "x[at]", "a + b", "z = a", "0", "gather")


@fusec.reduction
class spread:
    """Mean, variance and the place of the least element, which its map looks for in a loop."""

    identity = (0, 0.0, 0.0, np.inf, -1)

    def map(x, y, index):
        for k in range(3):
            if x * y < k:
                return 1, x * y, 0.0, x, index
        return 1, x * y + 1, 0.0, x, index

    def combine(a, b):
        (n, mean, squares, low, at), (m, other, rest, least, place) = a, b
        if n + m == 0:
            return a
        step = other - mean
        if least < low or (least == low and place < at):
            low, at = least, place
        return n + m, mean + step * m / (n + m), squares + rest + step * step * n * m / (n + m), low, at

    def finish(held, count):
        n, mean, squares, _, at = held
        return mean, squares / n, at + count


SMALL = ("float16", "bfloat16", "float32", "complex64", "int8", "uint8", "int16", "uint16", "int32", "int64", "uint64")


def random(dtype, *shape):
    rng = np.random.default_rng(len(shape))
    numpy = dtypes.BY_NAME[dtype].numpy
    if dtypes.BY_NAME[dtype].is_integer:
        return np.frombuffer(rng.bytes(numpy.itemsize * int(np.prod(shape))), numpy).reshape(shape).copy()
    values = rng.normal(size=shape)
    return (values + 1j * rng.normal(size=shape) if numpy.kind == "c" else values).astype(numpy)


def calls_of_types(types):
    """Sums along the last axis and along the first, of one chunk and of several."""
    found = []
    for dtype in types:
        x = random(dtype, 3, 150)
        found += [called(SUM, x, axis=1), called(SUM, np.ascontiguousarray(x.T), axis=0)]
    return found


def calls_of_layouts():
    """Strides, broadcasting, masks, several axes, positions, raw arrays, numbers by value."""
    base = random("float32", 6, 70, 40)
    bits = random("int8", 3, 700) > 0
    index = np.abs(random("int64", 4, 90)) % 100
    return [
        *(called(MANY, base, base[:, :1], axis=axis) for axis in (None, 0, 1, 2, (0, 2))),
        called(MANY, base.transpose(2, 0, 1)[::3], 0.5, axis=1),
        called(MANY, base[:, ::2, 3:36], base[:1, 1::2, :33], axis=2),
        called(SUM, base, axis=1, where=base > 0),
        called(SUM, base, where=base[:, :, :1] > 0),
        *(called(PLACE, np.round(base), axis=axis) for axis in (None, 0, 2)),
        called(COUNT, bits, axis=1), called(COUNT, bits),
        called(GATHER, random("float32", 100), index, axis=1), called(GATHER, random("float32", 100), index, axis=0),
    ]  # fmt: skip


def calls_of_functions():
    """A reduction of Python functions: several parts and results, returns in a loop, positions, a mask, a number."""
    x = np.round(random("float32", 3, 150), 1)
    kernels = [spread.bound(args, {})[0] for args in ((x, x), (x, 0.5))]
    tagged = fusec.reduction(max, finish=lambda held, indices: held + indices[0] * 100 + indices[1])
    y = random("float32", 70, 3, 2)
    return [
        called(kernels[0], x, x[:1], axis=1, where=x < 1),
        called(kernels[1], np.ascontiguousarray(x.T), 0.5, axis=0),
        called(tagged.bound((y,), {})[0], y, axis=0),
    ]


def staged_with_neighbours():
    """Values of one walk that another one stores, and totals of both."""
    x, beside = Input("x", FLOAT32), TotalInput("beside", FLOAT32)
    met = apply("add", beside, Reduce("add", x, FLOAT32))
    far = apply("multiply", x, apply("exp", met))
    outputs = (("y", far), ("most", Reduce("maximum", far, FLOAT32)), ("z", apply("maximum", met, beside)))
    return GraphKernel(KernelGraph("staged", (x, beside), outputs)).whole(frozenset())


def calls_with_neighbours():
    """Totals that meet arrays of their shape: where they are stored, and between the walks over a row."""
    x, beside = Input("x", FLOAT32), TotalInput("beside", FLOAT32)
    total, low = Reduce("add", x, FLOAT32), Reduce("minimum", x, FLOAT32)
    met = apply("add", beside, total)
    plain = GraphKernel(KernelGraph("met", (x, beside), (("z", met),))).whole(frozenset())
    staged = staged_with_neighbours()
    sizes = (("var", Spread("spread", x, FLOAT32)), ("sum", apply("add", total, beside)), ("most", low))
    spread = GraphKernel(KernelGraph("moments", (x, beside), sizes)).whole(frozenset())
    rows, columns = random("float32", 3, 150), random("float32", 50, 6)
    across = random("float32", 2, 6)[:1, ::2].T
    return [
        called(plain, rows, across, axis=1), called(plain, random("float32", 2, 9000), across[:2], axis=1),
        called(plain, columns, across[0] + columns[:1], axis=0), called(plain, rows, across[:1, :1], axis=None),
        called(plain, random("float32", 100, 6), columns[:1], axis=0),
        called(staged, rows, across, axis=1), called(staged, columns, columns[1:2], axis=0),
        called(spread, random("float32", 2, 9000), across[:2], axis=1), called(spread, columns, columns[1:2], axis=0),
    ]  # fmt: skip


def narrow_softmax(dtype, *shape):
    """Softmax of narrow floats along the last axis; powers are held in float32 once they are computed."""
    made = called(softmax_kernel(dtypes.BY_NAME[dtype].numpy).whole(frozenset()), random(dtype, *shape), axis=-1)
    calls = [each for each in expressions(roots_of(made.programs[0].body)) if isinstance(each, ir.Call)]
    assert len([each for each in calls if "exp" in each.function]) == 1
    return made


def held_cases():
    """Many rows, which groups, blocks of a thread for each lane, and of several, hold in registers."""
    few = [case("softmax", (129, 2100), 1), case("softmax", (129, 5000), 1), case("spread", (130, 2048), 1)]
    sharings = {each.phases[0].sharing for each in few}
    assert {each.segments for each in sharings} == {1, 2}
    assert {each.is_full for each in sharings} == {True, False}
    assert held_bytes(EXAMPLES["scores"][0]) == held_bytes(EXAMPLES["softmax"][0]) == 4  # of the product alone
    few += [case("scores", (129, 2100), 1), case("scores", (3, 300), 1), case("scores", (40, 2), 0)]
    few += [narrow_softmax("bfloat16", 3, 1000), narrow_softmax("float16", 129, 2100)]
    return [*few, case("spread", (129, 3000), 1), case("softmax", (3, 768), 1), case("softmax", (64, 3), 0)]


def of_graph(graph, *args, axis=-1):
    """A call of a graph whose rows are several chunks: one kernel for devices, one for each level on the CPU."""

    def run(*args):
        found = kernel(*args, axis=axis)
        return found if isinstance(found, tuple) else (found,)

    kernel = graph if isinstance(graph, GraphKernel) else GraphKernel(graph)
    made = called(kernel.whole(kernel._numbers(args)), *args, axis=axis, run=run, machine=CLUSTERS)
    (phase,) = made.phases
    assert phase.sharing.chunks > 1
    return made


def several_totals(dtype):
    """Totals of several levels, three on the second, of which one is of another input; an output of elements."""
    x, w = Input("x", dtype), Input("w", dtype)
    total, most = Reduce("add", apply("multiply", x, w), dtype), Reduce("maximum", x, dtype)
    far = apply("subtract", x, total)
    low, square = Reduce("minimum", apply("add", far, most), dtype), Reduce("add", apply("multiply", far, far), dtype)
    rest = apply("subtract", apply("multiply", w, square), apply("multiply", low, x))
    outputs = (("y", rest), ("low", low), ("sum", Reduce("add", apply("multiply", rest, w), dtype)))
    return KernelGraph("several", (x, w), outputs)


def long_rows():
    """Rows of several chunks that a block holds: whole ones and others, of one to four chunks' threads."""
    norm = layer_norm_kernel(np.dtype("f4"), np.dtype("f4"), "number")
    wide, half = softmax_kernel(np.dtype("f8")), softmax_kernel(dtypes.BY_NAME["bfloat16"].numpy)
    graph = several_totals(FLOAT32)
    row, base = random("float32", 16390), random("float32", 2, 3, 70, 150)
    found = [of_graph(softmax_kernel(np.dtype("f4")), random("float32", 2, count)) for count in (8193, 16384, 20000)]
    return [
        *found, of_graph(softmax_kernel(np.dtype("f4")), random("float32", 130, 9000)),
        of_graph(norm, random("float32", 3, 16390), row, 0.5, 1e-5), of_graph(half, random("bfloat16", 2, 25000)),
        of_graph(wide, random("float64", 2, 4100)), of_graph(wide, random("float64", 2, 16384)),
        of_graph(graph, random("float32", 2, 12000), random("float32", 12000)),
        of_graph(graph, base, base[:1, :, ::-1, ::-1], axis=(-2, -1)),
        of_graph(graph, base[:, 0], base[:, 2], axis=(-2, -1)),
        of_graph(log_softmax_kernel(np.dtype("f4")), random("float32", 4, 3, 10000)[:, 1:, 5:], axis=-1),
    ]  # fmt: skip


def rows_of_clusters():
    """Rows that several blocks hold: of five to eight blocks, of chunks that are missing or not whole, of segments."""
    norm, graph = layer_norm_kernel(np.dtype("f4"), np.dtype("f4"), "number"), several_totals(FLOAT32)
    single, wide = softmax_kernel(np.dtype("f4")), softmax_kernel(np.dtype("f8"))
    row = random("float32", 70_001)
    found = [of_graph(single, random("float32", 2, count)) for count in (32_769, 65_536)]
    found += [of_graph(norm, random("float32", 2, 70_001), row, 0.5, 1e-5)]
    found += [of_graph(wide, random("float64", 2, 40_000))]
    found += [of_graph(graph, random("float32", 3, 40_000), random("float32", 40_000))]
    assert all(run.phases[0].sharing.blocks > 1 for run in found)
    return found


def narrow_rows():
    """Rows of narrow elements, several of which a thread loads at once if all rows lie at multiples of 16 bytes."""
    half, short = (dtypes.BY_NAME[name].numpy for name in ("bfloat16", "float16"))
    norm = layer_norm_kernel(half, half, np.dtype("f4")).whole(frozenset({"eps"}))
    small = softmax_kernel(np.dtype("i1")).whole(frozenset())
    wide = random("bfloat16", 3, 1008)
    found = [
        narrow_softmax("bfloat16", 130, 1024),
        narrow_softmax("float16", 130, 1992),
        narrow_softmax("float16", 2, 40),
    ]
    found += [called(norm, random("bfloat16", 3, 1000), wide[0, :1000], random("float32", 1000), 1e-5, axis=1)]
    found += [called(small, random("int8", 3, 400), axis=1), narrow_softmax("float16", 3, 2, 520)]
    found += [narrow_softmax("float16", 2, 40)]
    found += [called(softmax_kernel(half).whole(frozenset()), wide[:, :1000], axis=1)]
    assert all(run.phases[0].sharing.is_wide for run in found)
    apart = [narrow_softmax("bfloat16", 3, 1001), narrow_softmax("float16", 3, 1004)]
    apart += [called(softmax_kernel(short).whole(frozenset()), random("float16", 3, 1001)[:, 1:], axis=1)]
    assert not any(run.phases[0].sharing.is_wide for run in apart)
    return [*found, *apart]


def short_rows():
    """Many short rows, of which each thread has one, and blocks copy them by way of shared memory."""
    named = [("softmax", 5), ("softmax", 8), ("softmax", 12), ("softmax", 31), ("scores", 2), ("scores", 24)]
    named += [("sum", 7), ("argmin", 4), ("small", 31), ("spread", 9)]
    found = [case(name, (1030, count), 1) for name, count in named]
    base = random("float32", 1030, 6)
    beside = random("float32", 1, 6)
    found += [called(SUM, random(dtype, 1030, 3), axis=1) for dtype in ("bfloat16", "uint8", "complex64", "float64")]
    found += [called(MANY, base, each, axis=1) for each in (beside, base)]
    found += [called(PLACE, np.round(base), axis=1), called(SUM, base, axis=1, where=base > 0)]
    assert all(run.layouts[0].rows for run in found)
    several = staged_with_neighbours()
    column = random("float32", 1030, 1)
    found += [called(several, random("float32", 1030, count), column, axis=1) for count in (4, 11, 30)]
    assert not any(is_loaded for run in found[-3:] for name, is_loaded in run.layouts[0].rows if name == "y")
    return found


def rows_of_parts_of_groups():
    """Many rows of more elements than one thread takes alone, whose threads are a part of a group; the last is not."""
    named = [("softmax", 49), ("scores", 64), ("argmin", 60), ("spread", 61), ("sum64", 33)]
    found = [case(name, (1025, count), 1) for name, count in named]
    found += [narrow_softmax("bfloat16", 1027, 100), called(SUM, random("float32", 1025, 2, 37), axis=2)]
    found += [called(MANY, random("float32", 1029, 128), random("float32", 1, 128), axis=1)]
    assert {run.phases[0].sharing.few for run in found} == {8, 16}
    return found


DEFAULT = [name for name in EXAMPLES if name not in ("sum64", "scores")]


@pytest.mark.skipif(cuda_on_host.GXX is None, reason="needs g++")
def test_cuda_text_gives_the_bits_of_the_oracle(tmp_path):
    check_fibers(cases(["sum", "argmin", "spread"]), tmp_path)


@pytest.mark.skipif(cuda_on_host.GXX is None, reason="needs g++")
def test_rows_held_in_registers_have_the_bits_of_the_oracle(tmp_path):
    check_fibers(held_cases(), tmp_path)


@pytest.mark.skipif(cuda_on_host.GXX is None, reason="needs g++")
def test_rows_of_several_chunks_have_the_bits_of_a_kernel_for_each_level(tmp_path):
    check_fibers(long_rows(), tmp_path)


@pytest.mark.skipif(cuda_on_host.GXX is None, reason="needs g++")
def test_rows_that_clusters_of_blocks_hold_have_the_bits_of_a_kernel_for_each_level(tmp_path):
    check_fibers(rows_of_clusters(), tmp_path)


@pytest.mark.skipif(cuda_on_host.GXX is None, reason="needs g++")
@pytest.mark.parametrize(
    ("pattern", "instead", "fault"),
    [
        (r"fusec_tell\((total0_0\[chunk\]), (\w+)\);", r"\1 = \2;", "uninitialised memory"),
        (r"(fusec_tell\(total0_0.*?)fusec_meet\(\);", r"\1", "race|uninitialised memory"),
    ],
)
def test_blocks_of_a_cluster_that_do_not_tell_or_meet_each_other_are_found(pattern, instead, fault, tmp_path):
    """Each has shared memory of its own on the host, too."""
    run = of_graph(softmax_kernel(np.dtype("f4")), random("float32", 2, 33_000))
    texts = Texts([run], cuda.generate)
    spoilt, count = re.subn(pattern, instead, next(iter(texts.distinct)), count=1, flags=re.DOTALL)
    assert count
    programs = cuda_on_host.BlockPrograms([spoilt], tmp_path)
    with pytest.raises(KernelFault, match=fault):
        programs.run(texts.launches(0, run, in_struct=False), run.buffers)


@pytest.mark.slow
def test_rows_of_several_chunks_have_these_bits_in_ptx():
    check_ptx(long_rows()[:2], ["shuffled"])


@pytest.mark.skipif(cuda_on_host.GXX is None, reason="needs g++")
def test_narrow_rows_have_the_bits_of_the_cpu(tmp_path):
    check_fibers(narrow_rows(), tmp_path)


@pytest.mark.slow
def test_narrow_rows_have_these_bits_in_ptx():
    check_ptx(narrow_rows()[:4], ["shuffled"])


@pytest.mark.skipif(cuda_on_host.GXX is None, reason="needs g++")
def test_short_rows_that_blocks_copy_have_the_bits_of_the_oracle(tmp_path):
    check_fibers(short_rows(), tmp_path)


@pytest.mark.skipif(cuda_on_host.GXX is None, reason="needs g++")
def test_rows_of_parts_of_groups_have_the_bits_of_the_oracle(tmp_path):
    check_fibers(rows_of_parts_of_groups(), tmp_path)


@pytest.mark.slow
def test_rows_of_parts_of_groups_have_these_bits_in_ptx():
    check_ptx(rows_of_parts_of_groups(), ["shuffled"])


@pytest.mark.skipif(cuda_on_host.GXX is None, reason="needs g++")
def test_short_rows_may_begin_at_any_element(tmp_path):
    few = [case("softmax", (1031, 9), 1), called(SUM, random("uint8", 1031, 11), axis=1)]
    check_fibers(few, tmp_path, packed=True)


@pytest.mark.slow
@pytest.mark.skipif(cuda_on_host.GXX is None, reason="needs g++")
def test_cuda_text_gives_the_bits_of_the_oracle_at_every_boundary(tmp_path):
    check_fibers(cases(EXAMPLES, all_sizes=True), tmp_path)


def check_fibers(runs, folder, packed=False):
    texts = Texts(runs, cuda.generate)
    programs = cuda_on_host.BlockPrograms(list(texts.distinct), folder)
    for number, run in enumerate(runs):
        launches = texts.launches(number, run, in_struct=False, grid=2)
        assert_bits(run, programs.run(launches, run.buffers, (0, 1, 2), packed=packed))


@pytest.mark.skipif(metal_on_host.CLANG is None, reason="needs clang")
def test_metal_text_gives_the_bits_of_the_oracle(tmp_path):
    check_metal(cases(["sum", "argmin"]), tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(metal_on_host.CLANG is None, reason="needs clang")
def test_metal_text_gives_the_bits_of_the_oracle_at_every_boundary(tmp_path):
    check_metal(cases([name for name in EXAMPLES if name not in WIDE], all_sizes=True), tmp_path)


def check_metal(runs, folder):
    texts = Texts(runs, metal.generate)
    programs = metal_on_host.BlockPrograms(list(texts.distinct), folder)
    for number, run in enumerate(runs):
        launches = texts.launches(number, run, in_struct=True)
        assert_bits(run, programs.run(launches, run.buffers, (0, 1, 2)))


def test_ptx_gives_the_bits_of_the_oracle():
    check_ptx(cases(DEFAULT), ["shuffled"])


@pytest.mark.slow
def test_ptx_gives_the_bits_of_the_oracle_at_every_boundary():
    check_ptx(cases(EXAMPLES, all_sizes=True), ["ascending", "descending", "shuffled"])


def check_ptx(runs, orders):
    pytest.importorskip("cuda.bindings.nvrtc", reason="the extra fusec[cuda] brings NVRTC")
    texts = Texts(runs, cuda.generate)
    module = ptx.load(cuda_in_ptx.ptx_of(cuda_in_ptx.translation_unit(list(texts.distinct.values()))))
    for number, run in enumerate(runs):
        for order in orders:
            assert_bits(run, run_in_ptx(module, texts, number, run, order))


@pytest.mark.slow
def test_short_rows_that_blocks_copy_have_these_bits_in_ptx():
    check_ptx(short_rows(), ["shuffled"])


def test_short_rows_lie_in_different_banks():
    """Threads read the widest words that rows consist of; what they read at once shares no bank, or one for two."""
    for nbytes in (1, 2, 4, 8):
        for length in range(2, min(33, 192 // nbytes)):
            pitch = rows._pitch(length, nbytes)
            word = gcd(length * nbytes, pitch * nbytes, 16)
            words = {thread * pitch * nbytes // 4 for thread in range(min(32, 128 // word))}
            assert length <= pitch
            assert max(Counter(each % 32 for each in words).values()) <= (1 if word >= 4 else 2)


def test_threads_with_a_lane_load_all_of_it_before_they_combine_it():
    """The first walk is in a branch that asks for a number which a compiler of the text does not know."""
    full = called(softmax_kernel(np.dtype("f8")).whole(frozenset()), random("float64", 129, 2048), axis=1)
    for run in (full, case("softmax", (129, 2100), 1)):
        text = cuda.generate(run.programs[0], run.layouts[0]).source
        loads, _, walk = text.partition("if (lane < axis) {\n" if run is full else "if (lane < covered) {\n")
        assert "held_0[slot] =" in loads
        assert "running0_0" not in loads
        assert re.search(r"running0_0 = \w+\(running0_0, ", walk)


def test_short_rows_are_stored_where_they_were_loaded():
    """Threads have loaded all of their rows by then; results of another width have a place of their own."""
    small = softmax_kernel(np.dtype("i1")).whole(frozenset())
    runs = [case("softmax", (1030, 31), 1), called(small, random("int8", 1030, 12), axis=1)]
    texts = [cuda.generate(run.programs[0], run.layouts[0]).source for run in runs]
    assert [text.count("__shared__") for text in texts] == [1, 2]


FEW = ("bfloat16", "complex64", "int16")


@pytest.mark.skipif(cuda_on_host.GXX is None, reason="needs g++")
@pytest.mark.slow
def test_kernels_of_users_give_the_bits_of_the_cpu(tmp_path):
    check_fibers([*calls_of_types(FEW), *calls_of_functions(), *calls_with_neighbours()], tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(cuda_on_host.GXX is None, reason="needs g++")
def test_every_type_and_layout_gives_the_bits_of_the_cpu(tmp_path):
    check_fibers([*calls_of_types((*SMALL, "float64", "complex128")), *calls_of_layouts()], tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(metal_on_host.CLANG is None, reason="needs clang")
def test_every_type_and_layout_gives_the_bits_of_the_cpu_in_metal(tmp_path):
    check_metal([*calls_of_types(SMALL), *calls_of_layouts(), *calls_of_functions()], tmp_path)


@pytest.mark.skipif(metal_on_host.CLANG is None, reason="needs clang")
def test_totals_meet_their_neighbours_in_metal(tmp_path):
    check_metal(calls_with_neighbours(), tmp_path)


@pytest.mark.slow
def test_every_type_and_layout_gives_the_bits_of_the_cpu_in_ptx():
    check_ptx([*calls_of_types(FEW), *calls_of_layouts()], ["shuffled"])


@pytest.mark.slow
def test_every_type_gives_the_bits_of_the_cpu_in_ptx():
    check_ptx([*calls_of_types((*SMALL, "float64", "complex128")), *calls_of_functions()], ["descending"])


def check_nvrtc(names, arch):
    test_nvrtc = pytest.importorskip("test_nvrtc", reason="the extra fusec[cuda] brings NVRTC")
    texts = Texts([*cases(names), *short_rows()], cuda.generate)
    test_nvrtc.assert_compiles(list(texts.distinct.values()), arch)
    assert any(kernel.group == GROUP for kernel in texts.distinct.values())


def test_nvrtc_compiles_reductions_without_spills():
    check_nvrtc(["sum", "argmin", "spread"], "sm_90")


@pytest.mark.slow
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"])
def test_nvrtc_compiles_reductions_for_every_architecture(arch):
    check_nvrtc(EXAMPLES, arch)


@pytest.mark.parametrize(("shape", "axis", "loads"), [((2, 2000), 1, 32), ((8193,), 0, 16)])
def test_whole_rounds_are_loaded_without_tests_between(shape, axis, loads):
    """PTX shows it: no branch stands between eight rounds of four lanes, or between all rounds of a block's thread."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="the extra fusec[cuda] brings NVRTC")
    texts = Texts([case("sum", shape, axis)], cuda.generate)
    text = cuda_in_ptx.ptx_of(next(iter(texts.distinct)), "compute_90")
    blocks = re.split(r"bra|\n\$L", text)
    assert max(block.count("ld.global") for block in blocks) >= loads
