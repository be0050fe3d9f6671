"""Scans in the IR: the order that the oracle follows, and the programs made of them."""

import numpy as np
import pytest

from fusec import passes
from fusec.ir.interpret import interpret
from fusec.ir.verify import verify
from tests.support.scan_examples import EXAMPLES, inputs, oracle, scanned


def by_hand(values, is_last):
    """Note [Scan order] for one row, one operation after the other."""
    chunk = 2048 if is_last else 64
    chunks = [list(values[at : at + chunk]) for at in range(0, len(values), chunk)]
    results = [row_by_groups(each) if is_last else row_by_row(each) for each in chunks]
    if len(results) > 1:
        prefixes = by_hand([each[-1] for each in results[:-1]], is_last)
        results[1:] = [[prefix + x for x in each] for prefix, each in zip(prefixes, results[1:], strict=True)]
    return [x for each in results for x in each]


def row_by_row(values):
    made = values[:1]
    for x in values[1:]:
        made.append(made[-1] + x)
    return made


def row_by_groups(values):
    made, carry = [], None
    for start in range(0, len(values), 32):
        group = values[start : start + 32]
        for distance in (1, 2, 4, 8, 16):
            group = [group[at - distance] + x if at >= distance else x for at, x in enumerate(group)]
        last = group[-1]
        made += group if carry is None else [carry + x for x in group]
        carry = last if carry is None else carry + last
    return made


@pytest.mark.parametrize("count", [1, 2, 31, 32, 33, 63, 65, 2047, 2048, 2049, 6000, 70000])
def test_the_last_axis_is_scanned_by_groups_and_chunks(count):
    x = np.random.default_rng(count).normal(size=count).astype("f4")
    scan, _, outputs = EXAMPLES["sum"]
    assert oracle(scan, {"x": x}, outputs, (count,), 0)["z"].tolist() == by_hand(x, is_last=True)


@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 128, 200, 5000])
def test_another_axis_is_scanned_one_by_one_in_chunks(count):
    x = np.random.default_rng(count).normal(size=(count, 2)).astype("f4")
    scan, _, outputs = EXAMPLES["sum"]
    found = oracle(scan, {"x": x}, outputs, (count, 2), 0)["z"]
    assert found.T.tolist() == [by_hand(column, is_last=False) for column in x.T]


def run_program(program, arrays, scalars, space):
    verify(program)
    program = passes.run(program, check=True)
    # A program goes on beyond its space from there; the interpreter wants arrays at least as large.
    held = {}
    for name, array in arrays.items():
        whole = tuple(map(max, array.shape, space))
        held[name] = np.zeros(whole, array.dtype)
        held[name][tuple(map(slice, array.shape))] = array
    interpret(program, held, scalars, space)
    for name, array in arrays.items():
        array[...] = held[name][tuple(map(slice, array.shape))]


FEW = {"both", "argmin"}  # flags, structs, what is exclusive; the others are much alike
SOME = [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in EXAMPLES]


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("parted", [False, True])
def test_programs_of_groups_give_the_bits_of_the_oracle(name, parted):
    scan, names, outputs = EXAMPLES[name]
    for extent in (4130,) if parted else (1, 31, 32, 33, 2081):
        shape = (2, extent)
        given = inputs(names, shape, 1)
        expected = oracle(scan, given, outputs, shape, 1)
        found = scanned(scan, given, outputs, shape, 1, run_program, parted=parted)
        for output in outputs:
            assert expected[output].tobytes() == found[output].tobytes(), (output, extent)


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("parted", [False, True])
def test_programs_of_columns_give_the_bits_of_the_oracle(name, parted):
    scan, names, outputs = EXAMPLES[name]
    for extent in (65, 200) if parted else (1, 63, 64, 65, 129):
        shape = (2, extent, 3)
        given = inputs(names, shape, 1)
        expected = oracle(scan, given, outputs, shape, 1)
        found = scanned(scan, given, outputs, shape, 1, run_program, parted=parted)
        for output in outputs:
            assert expected[output].tobytes() == found[output].tobytes(), (output, extent)


@pytest.mark.slow
def test_totals_are_scanned_by_chunks_too():
    scan, names, outputs = EXAMPLES["sum"]
    for parted in (False, True):
        shape = (1, 64 * 65 + 1, 2)
        given = inputs(names, shape, 1)
        expected = oracle(scan, given, outputs, shape, 1)["z"]
        assert expected.tobytes() == scanned(scan, given, outputs, shape, 1, run_program, parted=parted)["z"].tobytes()


@pytest.mark.parametrize("name", ["exclusive", "both"])
def test_exclusive_results_are_those_of_the_element_before(name):
    scan, names, outputs = EXAMPLES[name]
    inclusive, _, _ = EXAMPLES["sum" if name == "exclusive" else "segments"]
    given = inputs(names, (4500,), 0)
    expected, found = (oracle(each, given, outputs, (4500,), 0)["z"] for each in (inclusive, scan))
    starts = given.get("new", np.zeros(4500, bool))
    np.testing.assert_array_equal(found[1:], np.where(starts[1:], 0, expected[:-1]))
    assert found[0] == 0


def test_segments_start_again():
    scan, names, outputs = EXAMPLES["segments"]
    given = inputs(names, (3000,), 0)
    found = oracle(scan, given, outputs, (3000,), 0)["z"]
    edges = np.flatnonzero(given["new"])
    for part, sums in zip(np.split(given["x"], edges), np.split(found, edges), strict=True):
        np.testing.assert_allclose(sums, np.cumsum(part.astype("f8")), rtol=1e-5, atol=1e-3)
