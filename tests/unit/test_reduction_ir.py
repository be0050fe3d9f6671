"""Reductions in the IR: the order that the oracle follows, passes that keep it, and the programs made of them."""

import numpy as np
import pytest

import fusec
from fusec import passes
from fusec.base.dtypes import FLOAT32, FLOAT64, INT32, INT64
from fusec.compiler import reduction_pipeline
from fusec.dispatch.spec import CallOptions
from fusec.ir.interpret import interpret
from fusec.ir.interpret_reductions import interpret_reduction
from fusec.ir.loops import GROUP
from fusec.ir.reductions import AXIS, ROUNDS, OneAxis
from fusec.ir.uniform import uniformity
from fusec.ir.verify import verify
from fusec.library import arguments
from fusec.passes.block_reduction import BlockShape, reduce_in_blocks
from fusec.passes.expand import expand
from fusec.passes.group_reduction import reduce_in_groups
from fusec.passes.lone_reduction import reduce_alone
from fusec.passes.phases import first_phase, next_phase
from fusec.passes.reductions import run_on_reduction
from fusec.passes.serialise import serialise
from tests.support import reduction_examples as examples


def oracle(reduction, arrays, shape, axis, outputs, is_last=None):
    reduction = run_on_reduction(reduction, expand)
    kept = shape[:axis] + shape[axis + 1 :]
    made = {name: np.zeros(kept, dtype) for name, dtype in outputs.items()}
    interpret_reduction(reduction, {**arrays, **made}, {}, OneAxis(shape, axis, is_last=is_last))
    return made


def by_hand(values, lanes, rounds):
    """Note [Order] for one row, one operation after the other."""
    values = list(values)
    while len(values) > 1:
        chunks = [values[at : at + lanes * rounds] for at in range(0, len(values), lanes * rounds)]
        values = []
        for chunk in chunks:
            held = chunk[:lanes]
            for at in range(lanes, len(chunk)):
                held[at % lanes] = held[at % lanes] + chunk[at]
            half = lanes // 2
            while half:
                for lane in range(half):
                    if lane + half < len(held):
                        held[lane] = held[lane] + held[lane + half]
                held = held[:half]
                half //= 2
            values.append(held[0])
    return values[0]


@pytest.mark.parametrize("count", [1, 2, 3, 31, 127, 128, 129, 255, 300, 8191, 8192, 8193, 20000])
def test_the_last_axis_is_summed_by_lanes_and_chunks(count):
    x = np.random.default_rng(count).normal(size=count).astype("f4")
    reduction = examples.simple("add", FLOAT32)
    assert reduction.lanes == 128
    found = oracle(reduction, {"x": x}, (count,), 0, {"z": "f4"})["z"]
    assert found == by_hand(x, 128, ROUNDS)


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 128, 200, 5000])
def test_another_axis_is_summed_one_by_one_in_chunks(count):
    x = np.random.default_rng(count).normal(size=(count, 3)).astype("f8")
    found = oracle(examples.simple("add", FLOAT64), {"x": x}, (count, 3), 0, {"z": "f8"})["z"]
    assert found.tolist() == [by_hand(column, 1, ROUNDS) for column in x.T]


def test_lanes_follow_the_widest_accumulator():
    assert examples.simple("add", FLOAT64).lanes == 64
    assert examples.argmin(FLOAT32).lanes == 64
    assert examples.simple("add", INT32, INT64).lanes == 64


EXAMPLES = {
    "sum": (examples.simple("add", FLOAT32), {"x": "f4"}, {"z": "f4"}),
    "dot": (examples.dot(FLOAT64), {"x": "f8", "y": "f8"}, {"z": "f8"}),
    "extremes": (examples.extremes(FLOAT32), {"x": "f4"}, {"low": "f4", "high": "f4"}),
    "argmin": (examples.argmin(FLOAT32), {"x": "f4", "at": "i8"}, {"value": "f4", "where": "i8"}),
    "spread": (examples.spread(), {"x": "f4"}, {"z": "f8"}),
}


def inputs(names, shape, axis):
    rng = np.random.default_rng(len(shape))
    made = {name: rng.integers(-50, 50, shape) * rng.choice([1, 0.37], shape) for name in names}
    if "at" in made:
        steps = np.arange(shape[axis]).reshape([-1 if each == axis else 1 for each in range(len(shape))])
        made["at"] = np.broadcast_to(steps, shape)
    return {name: made[name].astype(dtype) for name, dtype in names.items()}


@pytest.mark.parametrize("name", EXAMPLES)
def test_results_are_those_of_numpy(name):
    reduction, names, outputs = EXAMPLES[name]
    for shape, axis in (((9000,), 0), ((5, 700), 1), ((700, 5), 0), ((3, 200, 4), 1)):
        given = inputs(names, shape, axis)
        found = oracle(reduction, given, shape, axis, outputs)
        for output, value in by_numpy(name, given, shape, axis).items():
            np.testing.assert_allclose(found[output], value, rtol=1e-5, atol=1e-2 if name == "sum" else 1e-9)


def by_numpy(name, given, shape, axis):
    x = given["x"].astype("f8")
    match name:
        case "sum":
            return {"z": x.sum(axis)}
        case "dot":
            return {"z": (x * given["y"]).sum(axis)}
        case "extremes":
            return {"low": x.min(axis), "high": x.max(axis)}
        case "argmin":
            return {"value": x.min(axis), "where": x.argmin(axis)}
        case "spread":
            return {"z": x.var(axis) * shape[axis]}


@pytest.mark.parametrize("name", EXAMPLES)
def test_passes_keep_the_bits(name):
    reduction, names, outputs = EXAMPLES[name]
    after = run_on_reduction(reduction, lambda program: passes.run(program, check=True))
    assert {each.combine for each in after.accumulators} <= {function.name for function in after.functions}
    given = inputs(names, (3, 300), 1)
    before, found = (oracle(each, given, (3, 300), 1, outputs) for each in (reduction, after))
    for output in outputs:
        assert before[output].tobytes() == found[output].tobytes()


def in_phases(reduction, given, shape, axis, outputs):
    """Run programs that walk the axis, phase after phase."""
    extent = shape[axis]
    total = reduction.total
    phase = reduction if extent <= ROUNDS else first_phase(reduction)
    while True:
        chunks = -(-extent // ROUNDS)
        space = (*shape[:axis], chunks, *shape[axis + 1 :])
        program = serialise(phase, axis, of_results=extent < shape[axis])
        verify(program)
        program = passes.run(program, check=True)
        made = {}
        for param in program.arrays:
            if param.written:
                made[param.name] = np.zeros(space, param.dtype.numpy)
        whole = (*shape[:axis], extent, *shape[axis + 1 :])  # the program goes on beyond its space from there
        views = {name: np.broadcast_to(array, whole) for name, array in given.items()}
        interpret(program, {**views, **made}, {AXIS: extent}, space)
        if chunks == 1:
            return {name: np.squeeze(value, axis) for name, value in made.items()}
        given = {f"_given{at}": made[f"_partial{at}"] for at in range(len(total.parts))}
        extent = chunks
        phase = next_phase(reduction, is_last=extent <= ROUNDS)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("extent", [1, 5, 64, 65, 129, 4200])
@pytest.mark.sampled(5)
def test_serial_programs_in_phases_give_the_bits_of_the_oracle(name, extent):
    reduction, names, outputs = EXAMPLES[name]
    shape = (2, extent, 3)
    given = inputs(names, shape, 1)
    expected = oracle(reduction, given, shape, 1, outputs)
    found = in_phases(reduction, given, shape, 1, outputs)
    for output in outputs:
        assert expected[output].tobytes() == found[output].tobytes()


def test_a_reduction_without_total_stores_elements():
    x = np.random.default_rng(0).normal(size=(4, 500)).astype("f4")
    y = np.zeros_like(x)
    interpret_reduction(run_on_reduction(examples.softmax(), expand), {"x": x, "y": y}, {}, OneAxis(x.shape, 1))
    power = np.exp(x.astype("f8") - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, power / power.sum(1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("extent", [1, 5, 31, 32, 33, 64, 100, 128, 129, 1000, 4096, 4097, 9000])
@pytest.mark.sampled(5)
def test_programs_of_groups_give_the_bits_of_the_oracle(name, extent):
    reduction, names, _ = EXAMPLES[name]
    chunk = ROUNDS * reduction.lanes
    phase = reduction if extent <= chunk else first_phase(reduction)
    shape, chunks = (3, extent), -(-extent // chunk)
    given = inputs(names, shape, 1)
    program = reduce_in_groups(phase, 1)
    verify(program)
    program = passes.run(program, check=True)
    made = {p.name: np.zeros((3, chunks * GROUP), p.dtype.numpy) for p in program.arrays if p.written}
    wide = {each: np.zeros((3, max(extent, chunks * GROUP)), array.dtype) for each, array in given.items()}
    for each, array in given.items():
        wide[each][:, :extent] = array
    interpret(program, {**wide, **made}, {AXIS: extent}, (3, chunks * GROUP))
    for number in range(chunks):
        here = {each: array[:, number * chunk : (number + 1) * chunk] for each, array in given.items()}
        results = {p.name: p.dtype.numpy for p in program.arrays if p.written}
        expected = oracle(phase, here, here["x"].shape, 1, results)
        for output, value in expected.items():
            assert value.tobytes() == made[output][:, number].tobytes()


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("extent", [1, 2, 5, 8, 31, 32])
@pytest.mark.sampled(5)
def test_programs_of_lone_threads_give_the_bits_of_the_oracle(name, extent):
    reduction, names, _ = EXAMPLES[name]
    given = inputs(names, (3, extent), 1)
    for most in {32, 1 << (extent - 1).bit_length()}:
        program = reduce_alone(reduction, 1, most, is_full=most == extent)
        verify(program)
        program = passes.run(program, check=True)
        results = {p.name: p.dtype.numpy for p in program.arrays if p.written}
        expected = oracle(reduction, given, (3, extent), 1, results)
        made = {each: np.zeros(value.shape, value.dtype) for each, value in expected.items()}
        by_chunk = {each: value.reshape(3, -1) for each, value in made.items()}
        interpret(program, {**given, **by_chunk}, {AXIS: extent}, (3, 1))
        for output, value in expected.items():
            assert value.tobytes() == made[output].tobytes()


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("extent", [33, 49, 64, 100, 127, 128])
@pytest.mark.parametrize("together", [2, 8, 16])
@pytest.mark.sampled(5)
def test_programs_of_few_threads_give_the_bits_of_the_oracle(name, extent, together):
    reduction, names, _ = EXAMPLES[name]
    extent = min(extent, reduction.lanes)
    given, most = inputs(names, (3, extent), 1), -(-extent // together)
    program = reduce_alone(reduction, 1, most, extent == most * together, together)
    verify(program)
    program = passes.run(program, check=True)
    results = {p.name: p.dtype.numpy for p in program.arrays if p.written}
    made = {each: np.zeros((3, together), dtype) for each, dtype in results.items()}
    interpret(program, {**given, **made}, {AXIS: extent}, (3, together))
    for output, value in oracle(reduction, given, (3, extent), 1, results).items():
        assert value.tobytes() == made[output][:, 0].tobytes()


@pytest.mark.parametrize("name", sorted(fusec.HOMES["library.reductions"].split()))
@pytest.mark.sampled(5)
def test_programs_of_threads_are_verified(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporaries of all parts of a reduction share a scope there; the parts went through the passes one by one."""
    made = []

    def run(kernel, args, out, axis, keepdims):
        options = CallOptions(axis, keepdims)
        made.append(kernel.planned(args, options).bound)
        found = kernel.run(args, out, options)
        for phase in made[-1].launches:
            prepared = reduction_pipeline.prepared(kernel.definition, made[-1].request, phase)
            verify(reduction_pipeline.threaded(prepared, phase))
            if phase.is_last:
                program = reduce_in_blocks(prepared, phase.axis, BlockShape(2))
                verify(program)
                assert not uniformity(program).partings
        return found[0] if kernel.nout == 1 else found

    monkeypatch.setattr(arguments, "run", run)
    for shape, axis in (((60, 5), 0), ((2, 9000), 1)):
        x = np.ones(shape, "f4")
        getattr(fusec, name)(*((x, x) if name in ("mulsum", "vecdot") else (x,)), axis=axis)
    assert len(made) == 2
