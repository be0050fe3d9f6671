"""Random graphs of arrays: compiled, they give what NumPy gives; printed, they are read back; extents are integers."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fusec import graph
from fusec.graphs import extents
from fusec.graphs.nodes import Broadcast, Fold, Map, Reshape, SizeNumber, Slice, Transpose, Update
from fusec.graphs.parse import parse_arrays
from fusec.graphs.text import print_arrays
from fusec.ir.arithmetic import evaluate
from fusec.ir.expr import Const
from fusec.ir.walk import inner_first

SIZES = st.fixed_dictionaries({"n": st.integers(1, 6), "m": st.integers(1, 5)})
FOLDS = {"add": np.add, "maximum": np.maximum, "bitwise_xor": np.bitwise_xor}


def interpreted(built, arrays, sizes):
    """The outputs of a graph by NumPy, value by value."""
    values = dict(zip(built.inputs, arrays, strict=True))

    def shape(given):
        return tuple(extents.at(each, sizes) for each in given)

    def index(starts, steps, counts):
        if min(shape(counts), default=0) < 0:
            raise IndexError("a slice of fewer elements than none")  # which arange would take for none
        places = zip(shape(starts), steps, shape(counts), strict=True)
        return np.ix_(*(start + step * np.arange(count) for start, step, count in places))

    for node in inner_first([value for _, value in built.outputs], values):
        args = [values[each] for each in node.children]
        match node:
            case Const():
                found = np.asarray(node.value)
            case SizeNumber():
                found = np.int64(extents.at(node.extent, sizes))
            case Map():
                one = FOLDS[node.op](*args) if node.op in FOLDS else evaluate(node.op, args, node.type)
                found = np.broadcast_to(one, np.broadcast_shapes(*(each.shape for each in args)))
            case Slice():
                found = args[0][index(node.starts, node.steps, node.shape)] if args[0].ndim else args[0]
            case Transpose():
                found = args[0].transpose(node.axes)
            case Reshape():
                found = args[0].reshape(shape(node.shape))
            case Broadcast():
                found = np.broadcast_to(args[0], shape(node.shape))
            case Fold():
                found = FOLDS[node.op].reduce(args[0], axis=node.axes, keepdims=True, dtype=args[0].dtype)
            case Update():
                found = args[0].copy()
                where = index(node.starts, node.steps, node.extents)
                found[where] = np.broadcast_to(args[1], shape(node.extents))
        values[node] = found
    return [values[value] for _, value in built.outputs]


@st.composite
def graphs(draw):
    """A graph of integers, whose results are exact, with inputs of named sizes."""
    made = graph.Graph("random")
    dtype = draw(st.sampled_from(["int32", "int64", "uint8"]))
    values = [
        made.input(f"x{at}", dtype, draw(st.sampled_from([("n",), ("m", "n"), (1, "n"), ("m", 1), ()])))
        for at in range(draw(st.integers(1, 3)))
    ]
    for _ in range(draw(st.integers(1, 8))):
        value = draw(st.sampled_from(values))
        match draw(st.sampled_from("binary binary binary fold slice reverse update transpose flat size".split())):
            case "binary":
                op = draw(st.sampled_from(["add", "subtract", "multiply", "maximum", "bitwise_xor"]))
                other = draw(st.sampled_from([*values, 3]))
                try:
                    values.append(made.apply(op, value, other))
                except ValueError:  # shapes that do not broadcast
                    continue
            case "fold" if value.ndim:
                axis = draw(st.integers(0, value.ndim - 1))
                values.append(value.fold(draw(st.sampled_from(list(FOLDS))), axis, keepdims=draw(st.booleans())))
            case "slice" if value.ndim and value.shape[-1] != 1:
                values.append(value[..., 1:])
            case "reverse" if value.ndim:
                values.append(value[..., ::-1])
            case "update" if value.ndim and value.shape[-1] != 1:
                values.append(value.updated((..., slice(0, 1)), draw(st.integers(0, 9))))
            case "transpose":
                values.append(value.T)
            case "flat":
                values.append(value.reshape(-1))
            case "size":
                values.append(made.number("n").astype(dtype))
    for value in draw(st.lists(st.sampled_from(values), min_size=1, max_size=3)):
        made.output(value)
    return made


@settings(max_examples=40, deadline=None)
@given(graphs(), st.lists(SIZES, min_size=1, max_size=4), st.integers(0, 2**32 - 1))
def test_compiled_graphs_give_the_bits_of_numpy_and_read_back(made, several, seed):
    built = made.built()
    assert parse_arrays(print_arrays(built)) == built
    known = {str(extent) for each in built.inputs for extent in each.shape}
    wants = frozenset().union(*(extents.names_of(each) for value in inner_first([v for _, v in built.outputs])
                                for each in getattr(value, "shape", ())))  # fmt: skip
    reached = list(inner_first([value for _, value in built.outputs]))
    numbers = {"n"} if any(isinstance(value, SizeNumber) for value in reached) else set()
    if not (wants | numbers) <= known:
        return
    compiled, rng = made.compile(), np.random.default_rng(seed)
    for sizes in several:  # one plan may serve all of them
        check(compiled, built, sizes, rng)


def check(compiled, built, sizes, rng):
    """Compare one call with NumPy."""
    arrays = [
        rng.integers(0, 100, tuple(extents.at(each, sizes) for each in declared.shape)).astype(declared.type.numpy)
        for declared in built.inputs
    ]
    before = [each.copy() for each in arrays]
    try:
        wanted = interpreted(built, arrays, sizes)
    except (IndexError, ValueError):  # a slice of nothing
        return
    found = compiled(*arrays)
    for one, other in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    for one, other in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(one, other)


POLYNOMIALS = st.recursive(
    st.one_of(st.integers(-4, 4), st.sampled_from(["n", "m"]).map(extents.size)),
    lambda parts: st.tuples(st.sampled_from("+-*/"), parts, parts),
    max_leaves=6,
)


def _made(tree, numbers):
    """A polynomial of extents, or of the integers that the sizes are."""
    if isinstance(tree, tuple):
        op, one, other = tree
        one, other = _made(one, numbers), _made(other, numbers)
        if op == "/":
            return one // 3
        return one + other if op == "+" else one - other if op == "-" else one * other
    return tree if numbers is None or isinstance(tree, int) else tree.at(numbers)


@given(POLYNOMIALS, SIZES)
def test_extents_are_the_integers_that_their_sizes_make(tree, sizes):
    found = _made(tree, None)
    assert extents.at(found, sizes) == _made(tree, sizes)
    assert found - found == 0
    assert found + found == 2 * found


@given(POLYNOMIALS, POLYNOMIALS)
def test_a_product_divided_by_a_size_is_the_rest(one, other):
    part, rest = _made(one, None), extents.size("k")
    assert extents.divided(part * rest, rest) == part
    assert part * _made(other, None) == _made(other, None) * part
