"""ElementwiseKernel as a user meets it: CuPy's calls, layouts, numbers, overlap, wrong arguments, threads, forks."""

import copy
import os
import pickle
import threading

import numpy as np
import pytest

import fusec
from fusec import FusecTypeError, FusecValueError

ADD = fusec.ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")
MUL_ADD = fusec.ElementwiseKernel("float32 x, float32 y, float32 z", "float32 w", "w = (x * y) + z;", "my_kernel")
SPLIT = fusec.ElementwiseKernel("T x", "T whole, T rest", "whole = floor(x); rest = x - whole;", "split")


def f32(*shape):
    rng = np.random.default_rng(len(shape))
    return rng.uniform(-4, 4, shape).astype(np.float32)


# --- results -------------------------------------------------------------------------------------------------------


def test_the_first_kernel_of_the_readme_is_numpys_result():
    x, y, z = f32(1000), f32(1000), f32(1000)
    for _ in range(3):
        np.testing.assert_array_equal(MUL_ADD(x, y, z), x * y + z)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "float64", "complex64"]
)
def test_every_dtype_gives_numpys_sum(dtype):
    x = np.arange(300).astype(dtype)
    y = np.arange(300)[::-1].astype(dtype)
    result = ADD(x, y)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, x + y)


def test_several_outputs_come_as_a_tuple():
    x = f32(77)
    whole, rest = SPLIT(x)
    np.testing.assert_array_equal(whole, np.floor(x))
    np.testing.assert_array_equal(rest, x - np.floor(x))


def test_return_forms():
    x = f32(9)
    out = np.empty_like(x)
    silent = fusec.ElementwiseKernel("T x", "T y", "y = x", "k", no_return=True)
    single = fusec.ElementwiseKernel("T x", "T y", "y = x", "k", return_tuple=True)
    assert silent(x, out) is None
    np.testing.assert_array_equal(out, x)
    assert isinstance(single(x), tuple)
    assert ADD(x, x, out) is out
    assert ADD(x, x, out=out) is out
    assert SPLIT(x, out=(out, np.empty_like(x)))[0] is out


def shapes_and_layouts():
    base = f32(12, 20)
    return {
        "contiguous": base,
        "fortran": np.asfortranarray(base),
        "transposed": f32(20, 12).T,
        "reversed": base[::-1, ::-1],
        "half reversed": base[:, ::-1],
        "strided": f32(24, 60)[::2, ::3],
        "row": f32(20),
        "column": f32(12, 1),
        "single": f32(1, 1),
        "0-d": f32(),
        "repeated": np.broadcast_to(f32(20), (12, 20)),
        "unaligned": np.frombuffer(b"\0" + base.tobytes(), np.uint8)[1:].view(np.float32).reshape(12, 20),
    }


@pytest.mark.parametrize("left", shapes_and_layouts())
@pytest.mark.parametrize("right", shapes_and_layouts())
@pytest.mark.sampled(5)
def test_every_pair_of_layouts(left, right):
    x, y = shapes_and_layouts()[left], shapes_and_layouts()[right]
    np.testing.assert_array_equal(ADD(x, y), x + y)


@pytest.mark.parametrize("layout", ["fortran", "transposed", "reversed", "half reversed", "strided", "contiguous"])
def test_outputs_of_every_layout(layout):
    x = f32(12, 20)
    out = shapes_and_layouts()[layout].copy(order="A") if layout != "strided" else np.zeros((24, 60), "f4")[::2, ::3]
    if "reversed" in layout:
        out = np.zeros((12, 20), "f4")[::-1, :: (-1 if layout == "reversed" else 1)]
    ADD(x, x, out)
    np.testing.assert_array_equal(out, x + x)


def test_inputs_broadcast_to_a_larger_output():
    x, out = f32(5), np.empty((3, 5), np.float32)
    np.testing.assert_array_equal(ADD(x, 1, out), np.broadcast_to(x + np.float32(1), (3, 5)))


def test_new_outputs_lie_in_memory_like_the_inputs():
    assert ADD(np.asfortranarray(f32(3, 4)), 1).flags.f_contiguous
    assert ADD(f32(3, 4), 1).flags.c_contiguous
    assert ADD(f32(3, 4, 5).transpose(1, 2, 0), 1).strides == (f32(3, 4, 5).transpose(1, 2, 0) + 1).strides


def test_the_index_counts_in_c_order_for_every_layout():
    index = fusec.ElementwiseKernel("T x", "int64 y", "y = i", "index")
    for name, x in shapes_and_layouts().items():
        np.testing.assert_array_equal(index(x), np.arange(x.size).reshape(x.shape), err_msg=name)


def test_coordinates_without_reduced_dims():
    where = fusec.ElementwiseKernel(
        "T x", "int64 a, int64 b", "a = _ind.get()[0]; b = _ind.get()[1];", "where", reduce_dims=False
    )
    a, b = where(f32(5, 7))
    np.testing.assert_array_equal(a, np.indices((5, 7))[0])
    np.testing.assert_array_equal(b, np.indices((5, 7))[1])


def test_raw_arguments_follow_strides():
    gather = fusec.ElementwiseKernel("raw T x, int64 at", "T y", "y = x[at]", "gather")
    for name, x in shapes_and_layouts().items():
        at = np.arange(x.size)[::-1]
        np.testing.assert_array_equal(gather(x, at), x.reshape(-1)[::-1], err_msg=name)


def test_raw_sizes_shapes_and_strides():
    facts = fusec.ElementwiseKernel(
        "raw T x", "int64 y", "y = i == 0 ? x.size() : i < 3 ? x.shape()[i - 1] : x.strides()[i - 3]", "facts"
    )
    x = f32(6, 10)[::2, ::-1]
    assert facts(x, size=5).tolist() == [30, 3, 10, *x.strides]


def test_numbers_take_the_type_of_the_arrays():
    x = np.arange(5, dtype=np.int8)
    assert ADD(x, 3).dtype == np.int8
    assert ADD(x, np.int64(3)).dtype == np.int8
    with pytest.raises(FusecValueError, match="does not fit int8"):
        ADD(x, 300)
    with pytest.raises(FusecTypeError, match=r"2.5 is not a value of int8"):
        ADD(x, 2.5)


@pytest.mark.filterwarnings("error")
def test_a_number_beyond_the_type_is_infinite_without_a_warning():
    scale = fusec.ElementwiseKernel("float32 factor, float32 x", "float32 z", "z = factor * x")
    assert np.isinf(scale(1e300, np.ones(3, np.float32))).all()


def test_zero_size_arrays_run_nothing_and_keep_their_shape():
    for shape in ((0,), (3, 0), (0, 3, 2)):
        assert ADD(f32(*shape), 1).shape == shape


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 5), (0, 0)])
def test_outputs_without_elements_may_be_given(shape):
    out = np.zeros(shape)
    assert ADD(np.zeros(shape), np.zeros(shape), out) is out
    assert ADD(np.zeros(shape), np.zeros(shape), np.empty(shape, order="F")).shape == shape


def test_a_kernel_without_outputs_returns_nothing():
    count = np.zeros(1, np.int64)
    kernel = fusec.ElementwiseKernel("T x, _non_const raw int64 n", "", "atomicAdd(&n[0], 1LL)", "count")
    for _ in range(3):
        assert kernel(f32(7), count) == ()
    assert count[0] == 21


def test_integers_beyond_every_float_are_refused_as_numpy_does():
    x = f32(3)
    ADD(x, 2), ADD(x, 2)
    for number in (10**400, -(10**400), 10**5000):
        for array in (x, x.astype("f8")):
            with pytest.raises(OverflowError, match=r"bits\) does not fit float(32|64), the type of parameter 'y'"):
                ADD(array, number)
    np.testing.assert_array_equal(ADD(x, 2**200), np.inf)  # which NumPy rounds so


def test_what_a_path_leaves_unassigned_is_zero():
    keep = fusec.ElementwiseKernel("T x", "T y", "if (x > 0) y = x", "keep")
    x = f32(10_000)
    for _ in range(3):
        np.testing.assert_array_equal(keep(x), np.where(x > 0, x, 0))
    out = np.full_like(x, 7)
    np.testing.assert_array_equal(keep(x, out), np.where(x > 0, x, 7))


def test_more_than_two_to_the_31_elements():
    flags = fusec.ElementwiseKernel(
        "int8 x, raw int8 hit", "raw int64 count", "if (i == 3000000000LL) count[0] = i", "k"
    )
    x = np.broadcast_to(np.int8(1), (3, 1_100_000_000))
    count = np.zeros(1, np.int64)
    flags(x, np.zeros(1, np.int8), count)
    assert count[0] == 3_000_000_000


# --- memory --------------------------------------------------------------------------------------------------------


def test_overlapping_outputs_give_what_separate_ones_would():
    for shift in (1, 3, 64):
        memory = f32(5000)
        expected = memory[:-shift] + memory[shift:]
        ADD(memory[:-shift], memory[shift:], memory[shift:])
        np.testing.assert_array_equal(memory[shift:], expected)
        memory = f32(5000)
        expected = memory[::-1] + np.float32(1)
        np.testing.assert_array_equal(ADD(memory[::-1], 1, memory), expected)


def test_in_place_works_without_a_copy():
    x = f32(5000)
    expected = x + x
    assert ADD(x, x, x) is x
    np.testing.assert_array_equal(x, expected)


def test_raw_inputs_that_are_also_outputs_are_read_before_they_change():
    shift = fusec.ElementwiseKernel("raw T x", "T y", "y = x[(i + 1) % x.size()]", "shift")
    x = np.arange(10_000, dtype=np.float32)
    np.testing.assert_array_equal(shift(x, x), np.roll(np.arange(10_000, dtype=np.float32), -1))


def test_inputs_declared_non_const_are_outputs_too():
    swap = fusec.ElementwiseKernel("_non_const T x, _non_const T y", "T z", "z = x; x = y; y = z;", "swap")
    x, y = f32(500), f32(500)[::-1].copy()
    expected = y.copy(), x.copy()
    swap(x, y)
    np.testing.assert_array_equal(x, expected[0])
    np.testing.assert_array_equal(y, expected[1])
    x.flags.writeable = False
    with pytest.raises(FusecValueError, match="read-only"):
        swap(x, y)
    with pytest.raises(FusecValueError, match="overlap in memory"):
        swap(y, y)


def test_results_are_not_recycled_while_they_live():
    x = f32(200_000)
    results = [ADD(x, number) for number in range(20)]
    for number, result in enumerate(results):
        np.testing.assert_array_equal(result, x + np.float32(number))


# --- wrong arguments -----------------------------------------------------------------------------------------------


def wrong_calls():
    x = f32(4)
    frozen = f32(4)
    frozen.flags.writeable = False
    return [
        ("Wrong number of arguments", TypeError, lambda: ADD(x)),
        ("Wrong number of arguments", TypeError, lambda: ADD(x, x, x, x)),
        ("takes no keyword 'axis'", TypeError, lambda: ADD(x, x, axis=0)),
        ("Unsupported type <class 'dict'>", TypeError, lambda: ADD(x, {1: 2})),
        ("Unsupported type str", TypeError, lambda: ADD(x, "a")),
        ("must be an array: .* got a list", TypeError, lambda: ADD(x, x, [1, 2])),
        ("Unsupported type", TypeError, lambda: ADD(x, None)),
        ("mask would be lost", TypeError, lambda: ADD(x, np.ma.array(x))),
        ("Output arguments type must be", TypeError, lambda: ADD(x, x, 1)),
        ("Output arguments type must be", TypeError, lambda: ADD(x, x, None)),
        ("Type is mismatched", TypeError, lambda: ADD(x, x.astype("f8"))),
        ("Type is mismatched", TypeError, lambda: ADD(x, x, x.astype("f8"))),
        ("Type is mismatched", TypeError, lambda: MUL_ADD(x, x, x.astype("f8"))),
        ("cannot be determined", TypeError, lambda: ADD(1, 2)),
        ("dtype 'object'", TypeError, lambda: ADD(x.astype(object), x)),
        ("byte order is foreign", TypeError, lambda: ADD(x, x, x.astype(">f4"))),
        ("is not supported", TypeError, lambda: ADD(np.zeros(3, "M8[s]"), np.zeros(3, "M8[s]"))),
        ("is not supported", TypeError, lambda: ADD(np.zeros(3, "f4,i4"), x)),
        ("is not supported", TypeError, lambda: ADD(np.array(["a", "b"]), x)),
        (r"do not broadcast: axis 1 differs", ValueError, lambda: ADD(f32(2, 3), f32(2, 4))),
        ("do not broadcast: axis 0 differs", ValueError, lambda: ADD(x, x, f32(5))),
        ("Out shape is mismatched", ValueError, lambda: ADD(x, x, f32(1))),
        ("read-only", ValueError, lambda: ADD(x, x, frozen)),
        (
            "is not a value of bool",
            TypeError,
            lambda: fusec.ElementwiseKernel("T x, bool b", "T y", "y = b")(x, np.str_("a")),
        ),
        (
            "is not a value of bool",
            TypeError,
            lambda: fusec.ElementwiseKernel("T x, bool b", "T y", "y = b")(x, np.nan),
        ),
        ("is not a value of float32", TypeError, lambda: ADD(x, np.timedelta64(5, "ns"))),
        ("share memory", ValueError, lambda: ADD(x, x, np.lib.stride_tricks.as_strided(f32(4), (4,), (0,)))),
        ("overlap in memory", ValueError, lambda: SPLIT(x, x, x)),
        ("Specified 'size' can be used only", ValueError, lambda: ADD(x, x, size=4)),
        ("size must be", ValueError, lambda: ADD(x, x, size="4")),
        ("size must be", ValueError, lambda: MUL_ADD(x, x, x, size=2**64 + 3)),
        ("block_size must be greater than zero", ValueError, lambda: ADD(x, x, block_size=0)),
        ("block_size must be .* at most 1024, not 1025", ValueError, lambda: ADD(x, x, block_size=1025)),
        ("block_size must be .* not 1.5", ValueError, lambda: ADD(x, x, block_size=1.5)),
        ("twice", TypeError, lambda: ADD(x, x, x, out=x)),
        ("one array for each output: 2, not 1", ValueError, lambda: SPLIT(x, out=x)),
        ("Invalid kernel name", ValueError, lambda: fusec.ElementwiseKernel("T x", "T y", "y = x", "1k")),
        ("Invalid kernel name", ValueError, lambda: fusec.ElementwiseKernel("T x", "T y", "y = x", "kernel-a")),
        ("Invalid kernel name", ValueError, lambda: fusec.ElementwiseKernel("T x", "T y", "y = x", "float")),
        ("as a parameter name", ValueError, lambda: fusec.ElementwiseKernel("T i", "T y", "y = i", "k")),
        ("types T of kernel 'add' are not known", TypeError, lambda: copy.copy(ADD).source("cuda")),
        ("unknown target 'opencl'", ValueError, lambda: ADD.source("opencl", {"T": "float32"})),
    ]


@pytest.mark.parametrize("number", range(len(wrong_calls())))
def test_wrong_arguments_are_named(number):
    message, kind, call = wrong_calls()[number]
    with pytest.raises(kind, match=message) as caught:
        call()
    assert isinstance(caught.value, fusec.FusecError)


def test_a_native_entry_refuses_what_the_first_call_would_refuse():
    free = fusec.ElementwiseKernel("int32 x", "U y", "y = x", "free")
    x = np.arange(9, dtype=np.int32)
    assert free(x, np.empty(9)).dtype == np.float64
    with pytest.raises(FusecTypeError, match="type U"):
        free(x)


def test_a_refused_call_writes_nothing():
    out = np.full(4, 5, np.float32)
    for args in ((f32(4), 1e400j, out), (f32(3), f32(4), out), (f32(4), f32(4).astype("f8"), out)):
        with pytest.raises(fusec.FusecError):
            ADD(*args)
    assert out.tolist() == [5, 5, 5, 5]


# --- the object ----------------------------------------------------------------------------------------------------


def test_kernels_pickle_and_copy():
    x = f32(50)
    for other in (pickle.loads(pickle.dumps(SPLIT)), copy.deepcopy(SPLIT)):
        np.testing.assert_array_equal(other(x)[0], np.floor(x))
        assert repr(other) == "<ElementwiseKernel split(T x) -> (T whole, T rest)>"


def test_attributes_are_cupys():
    assert (SPLIT.nin, SPLIT.nout, SPLIT.nargs, SPLIT.name, SPLIT.__name__) == (1, 2, 3, "split", "split")
    assert SPLIT.operation.startswith("whole")
    assert "split" in SPLIT._repr_html_()


def test_source_for_every_target():
    for target, word in {"cuda": "__global__", "metal": "kernel void", "llvm": "define", "ir": "split"}.items():
        assert word in SPLIT.source(target, {"T": "float32"})
    assert len(SPLIT.source("asm", {"T": "float32"})) > 100


def test_explain_names_what_happens():
    report = ADD.explain(f32(12, 20), f32(20))
    assert report.bytes_moved == 4 * (240 + 20 + 240)
    text = str(report)
    for word in ("float32", "'x'", "contiguous", "(12, 20)"):
        assert word in text


@pytest.mark.parametrize("name", ["llvm", "memcpy", "sin", "malloc", "main", "entry", "fusec"])
def test_no_kernel_name_means_something_to_the_compiler(name):
    kernel = fusec.ElementwiseKernel("T x, T y", "T z", "z = sin(x) + y", name)
    x, y = np.full((40, 300), 0.5), np.ones((300, 40))
    for _ in range(3):
        np.testing.assert_allclose(kernel(x, y.T), np.sin(0.5) + 1)  # in tiles, with a function of their own


# --- threads and processes -----------------------------------------------------------------------------------------


def test_threads_may_call_one_kernel_at_once():
    kernel = fusec.ElementwiseKernel("T x, T y", "T z", "z = x * y + T(1)", "threads")
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for size in (10, 1000, 300_000):
            for dtype in ("f4", "f8", "i4"):
                x = rng.integers(-9, 9, size).astype(dtype)
                wrong.extend((size, dtype) for _ in range(5) if not np.array_equal(kernel(x, x), x * x + 1))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_after_use_works():
    x = f32(2_000_000)
    expected = ADD(x, x)
    child = os.fork()
    if child == 0:
        fine = np.array_equal(ADD(x, x), expected) and np.array_equal(ADD(x[:10], 1), x[:10] + 1)
        os._exit(0 if fine else 1)
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(ADD(x, x), expected)


def test_arrays_of_other_libraries_come_back_as_theirs():
    torch = pytest.importorskip("torch")
    x = torch.arange(5, dtype=torch.float32)
    result = ADD(x, x)
    assert isinstance(result, torch.Tensor)
    assert result.tolist() == [0, 2, 4, 6, 8]


class Producer:
    """A host array that only speaks DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_any_dlpack_producer_is_an_argument():
    x = f32(10)
    np.testing.assert_array_equal(ADD(Producer(x), x), x + x)


class Liar:
    """Offers one protocol of arrays, and answers what it was told to: a value, or an error to raise."""

    def __init__(self, **answers):
        self.answers = answers

    def __getattr__(self, name):
        if name not in self.answers:
            raise AttributeError(name)
        answer = self.answers[name]
        if isinstance(answer, Exception):
            raise answer
        return answer


def raises(error):
    def raise_it(**_):
        raise error

    return raise_it


def used_capsule():
    capsule = np.ones(3).__dlpack__()
    np.from_dlpack(Liar(__dlpack__=lambda **_: capsule, __dlpack_device__=lambda: (1, 0)))
    return capsule


ERRORS = (
    ValueError("v"),
    KeyError("k"),
    ZeroDivisionError("z"),
    TypeError("t"),
    RuntimeError("r"),
    AttributeError("a"),
)
LIES = [
    *(Liar(__array_interface__=error) for error in ERRORS[:-1]),
    *(Liar(__cuda_array_interface__=error) for error in ERRORS[:-1]),
    *(Liar(__dlpack__=raises(error), __dlpack_device__=lambda: (1, 0)) for error in ERRORS),
    *(Liar(__dlpack__=raises(error), __dlpack_device__=raises(error)) for error in ERRORS),
    *(Liar(__dlpack__=lambda **_: 5, __dlpack_device__=lambda at=at: at) for at in ((), (1,), (1, 0), (2, 0), None)),
    Liar(__dlpack__=lambda **_: used_capsule(), __dlpack_device__=lambda: (1, 0)),
    *(
        Liar(**{protocol: {"version": 3, "typestr": "<f8", "shape": (4,), "data": (8, False), **lie}})
        for protocol in ("__array_interface__", "__cuda_array_interface__")
        for lie in ({"shape": (-4,)}, {"shape": ("a",)}, {"shape": (1 << 80,)}, {"strides": "ab"}, {"typestr": "zz"})
    ),
    *(
        Liar(**{protocol: lie})
        for protocol in ("__array_interface__", "__cuda_array_interface__")
        for lie in (None, 5, {})
    ),
]


@pytest.mark.parametrize("liar", LIES, ids=[str(number) for number, _ in enumerate(LIES)])
def test_arrays_that_lie_are_refused_with_the_reason(liar):
    with pytest.raises(fusec.FusecError) as caught:
        ADD(liar, 1.0)
    assert caught.value.error.code in ("F202", "F362", "F363")


class Copies(np.ndarray):
    """A NumPy array whose copies are none."""

    def copy(self, *args, **kwargs):
        raise KeyError("no copies")


def test_an_overlapping_subclass_is_copied_as_numpy_would():
    x = np.zeros(5).view(Copies)
    ADD(x[:-1], 1.0, x[1:])
    assert x.tolist() == [0, 1, 1, 1, 1]


def test_no_memory_for_an_output_is_the_same_error_from_every_entry():
    kernel = fusec.ElementwiseKernel("T x", "T y", "y = x", "large")
    x = np.broadcast_to(np.float64(1), (1 << 45,))
    for _ in range(4):  # the later calls come from native entries
        with pytest.raises(MemoryError):
            kernel(x)


def test_an_axis_that_an_array_has_not_is_an_error():
    width = fusec.ElementwiseKernel("raw T x", "int64 y", "y = x.shape()[1]", "width")
    assert width(f32(3, 7), size=1).tolist() == [7]
    with pytest.raises(IndexError, match=r"'width' uses 2 axes of 'x', which has 1"):
        width(f32(3), size=1)
    column = fusec.ElementwiseKernel("T x", "int64 y", "y = _ind.get()[1]", "column", reduce_dims=False)
    with pytest.raises(IndexError, match="uses 2 axes of the iteration space"):
        column(f32(3))
    assert "shape" in width.source("cuda", {"T": "float32"}) or "extent" in width.source("cuda", {"T": "float32"})


def wrong_definitions():
    kernel = fusec.ElementwiseKernel
    return [
        ("in_params of kernel 'k' must be a text", TypeError, lambda: kernel(["float32 x"], "float32 y", "y = x", "k")),
        ("operation of kernel 'k' must be a text", TypeError, lambda: kernel("float32 x", "float32 y", None, "k")),
        (
            "options of kernel 'kernel' must be a tuple",
            TypeError,
            lambda: kernel("T x", "T y", "y = x", options="-DX=1"),
        ),
        ("name of kernel 'kernel' must be", TypeError, lambda: kernel("T x", "T y", "y = x", 3)),
        ("no such input", ValueError, lambda: ADD.source("cuda", {"T": "float32"}, scalars=("q",))),
        ("unknown target 'cud'", ValueError, lambda: ADD.source("cud")),
        ("not a dictionary", TypeError, lambda: ADD.source("cuda", "float32")),
        ("not a dictionary", TypeError, lambda: ADD.source("cuda", np.ones(3))),
        ("not a dictionary", TypeError, lambda: fusec.elementwise(lambda x: x + 1).source("cuda", 3)),
        ("Wrong number of arguments", TypeError, lambda: ADD.explain()),
        ("no argument is an array", ValueError, lambda: MUL_ADD(1, 2, 3)),
        (
            "not enough memory for output 'z'",
            MemoryError,
            lambda: ADD(*2 * [np.broadcast_to(np.float32(1), (1 << 40, 64))]),
        ),
    ]


@pytest.mark.parametrize("number", range(len(wrong_definitions())))
def test_wrong_definitions_and_questions_are_named(number):
    message, kind, call = wrong_definitions()[number]
    with pytest.raises(kind, match=message) as caught:
        call()
    assert isinstance(caught.value, fusec.FusecError)


def test_the_public_names_can_be_completed():
    assert "ElementwiseKernel" in dir(fusec)
    assert all(hasattr(fusec, name) for name in fusec.__all__)


def layouts_of(dtype):
    whole = np.random.default_rng(1).random((6, 8, 10)).astype(dtype)
    return {
        "F order": (np.asfortranarray(whole), np.asfortranarray(whole)),
        "transposed": (whole.T, whole.T),
        "mixed": (whole[:, :, :6], np.ascontiguousarray(whole[:, :, :6].T).T),
        "reversed": (whole[::-1, :, ::-1], whole),
        "strided": (whole[..., ::3], whole[..., 1:9:2]),
        "row": (whole, whole[0, 0]),
        "column": (whole[..., :1], whole),
        "outer": (whole[:, :1, :1], whole[:1, :1]),
        "scalar array": (whole, np.array(2, dtype)),
    }


@pytest.mark.parametrize("name", layouts_of("float32"))
def test_repeated_calls_on_any_layout_stay_right(name):
    kernel = fusec.ElementwiseKernel("T x, T y", "T z", "z = x - y", "placed")
    x, y = layouts_of("float32")[name]
    for _ in range(4):  # Python, Python again, a native entry, and once more
        result = kernel(x, y)
        assert np.array_equal(result, x - y)
        assert result.strides == np.subtract(x, y).strides or name in ("outer", "mixed")
        x, y = x + 1 if x.flags.c_contiguous else x, y
        out = np.full(result.shape, 9, np.float32)
        assert kernel(x, y, out) is out
        assert np.array_equal(out, x - y)
    assert np.array_equal(kernel(x[:1], y), x[:1] - y)  # other shapes go elsewhere
    assert np.array_equal(kernel(x.astype("f8"), y.astype("f8")), x.astype("f8") - y.astype("f8"))


def test_a_known_layout_protects_shared_memory():
    kernel = fusec.ElementwiseKernel("float32 x", "float32 z", "z = x + 1", "shift")
    start = np.arange(40, dtype=np.float32)
    for _ in range(4):  # apart first, then the same shapes and strides with memory in common
        whole = start.copy()
        kernel(whole[:20:2], whole[20::2])
        assert np.array_equal(whole[20::2], start[:20:2] + 1)
        whole = start.copy()
        kernel(whole[:20:2], whole[2:22:2])
        assert np.array_equal(whole[2:22:2], start[:20:2] + 1)
    out = np.zeros(20, np.float32)[::2]
    out.flags.writeable = False
    with pytest.raises(FusecValueError):
        kernel(start[:20:2], out)
