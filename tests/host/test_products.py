"""Products as cuBLAS is asked for them, computed by a stand-in in host memory: every layout has NumPy's results."""

import ctypes
import shutil
import sys
from functools import partial
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusec.base import dtypes
from fusec.fusion.devices import device_products
from fusec.fusion.devices.device_products import Arrangement, planned
from fusec.fusion.functions.contractions import Contraction
from fusec.fusion.functions.libraries import _called_plainly, _called_with
from fusec.fusion.trace.trace_values import Buffer, LibraryCall, phantom
from fusec.runtime.cuda import products

sys.path.insert(0, str(Path(__file__).parent / "stub_driver"))
import stub

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("gcc") is None, reason="gcc builds the stand-in, an ELF library"
)
KINDS = ["e", "f", "d", "F", "D"]
EXTENTS = st.integers(1, 5)


@pytest.fixture(scope="module")
def blas(tmp_path_factory):
    """A handle of the stand-in, which is given memory to work in that it never touches."""
    folder = tmp_path_factory.mktemp("cublas")
    stub.build_driver(folder)
    ctypes.CDLL(str(folder / "libcuda.so.1"), mode=ctypes.RTLD_GLOBAL)
    library = stub.load_mathematics(folder)
    library.cublasGetStatusName.restype = ctypes.c_char_p
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "library", lambda: library)
        planned.cache_clear()
        handle = ctypes.c_void_p()
        library.cublasCreate_v2(ctypes.byref(handle))
        library.cublasSetMathMode(handle, 16)
        library.cublasSetStream_v2(handle, ctypes.c_void_p(1))
        library.cublasSetWorkspace_v2(handle, ctypes.c_void_p(256), ctypes.c_size_t(1))
        yield handle
    planned.cache_clear()


def called(function, dtype, *args, **options):
    """A call of one of NumPy's functions as a trace has it."""
    made = partial(_called_plainly, function)
    if args or options:
        made = partial(_called_with, function, (None, None, *args), options)
    row = dtypes.from_numpy(np.dtype(dtype))
    buffer = Buffer("temporary", 0, row, phantom((), np.dtype(dtype)), 0)
    return LibraryCall("np.product", made, [None, None], (buffer,), False, None)


def form(array):
    return Arrangement(array.shape, array.strides, dtypes.from_numpy(array.dtype))


def multiplied(handle, call, a, b, order=None, shape=None):
    """The result by the stand-in, and how many calls and copies it takes. order: of the result's axes in memory."""
    dtype = call.buffers[0].dtype.numpy
    axes = range(len(shape)) if order is None else order
    out = np.full([shape[axis] for axis in axes], 7, dtype).transpose(np.argsort(axes))
    product = planned(device_products.terms_of(call, a.ndim, b.ndim), form(a), form(b), form(out))
    arrays = [a, b, out]
    for at, copied in product.copies.items():
        made = np.empty([arrays[at].shape[axis] for axis in copied.order], copied.row.numpy)
        made = made.transpose(np.argsort(copied.order))
        if at < 2:
            made[...] = np.conj(arrays[at]) if copied.is_conjugate else arrays[at]
        arrays[at] = made
    if product.is_empty:
        out[...] = 0
    for gemm, operands in product.calls:
        gemm(handle, *(arrays[at].__array_interface__["data"][0] + start for at, start in operands))
    if arrays[2] is not out:
        out[...] = arrays[2]
    return out, len(product.calls), len(product.copies)


def filled(draw, shape, dtype):
    """An array of small whole numbers, whose products are exact, that lies in memory in some way."""
    order = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 1, 2, -1, -2])) for _ in shape]
    repeated = [draw(st.integers(0, 9)) == 0 for _ in shape]
    gaps = [draw(st.sampled_from([0, 0, 0, 3])) for _ in shape]
    own = [
        1 if each else extent * abs(step) + gap
        for extent, step, each, gap in zip(shape, steps, repeated, gaps, strict=True)
    ]
    base = np.arange(int(np.prod(own))) % 7 - 3
    values = (base * (1 + 2j) if np.dtype(dtype).kind == "c" else base).astype(dtype)
    array = values.reshape([own[axis] for axis in order]).transpose(np.argsort(order))
    for axis, (extent, step) in enumerate(zip(shape, steps, strict=True)):
        where = [slice(None)] * len(shape)
        where[axis] = slice(None) if array.shape[axis] == 1 else slice(None, None, step)
        array = array[tuple(where)]
        where[axis] = slice(0, extent)
        array = array[tuple(where)]
    return np.broadcast_to(array, shape)


@st.composite
def pairs(draw):
    """Operands of np.matmul, and a dtype of the result."""
    rows, inner, columns = draw(EXTENTS), draw(EXTENTS), draw(EXTENTS)
    if draw(st.integers(0, 15)) == 0:  # nothing to add up, or no result
        rows, inner = draw(st.sampled_from([(rows, 0), (0, inner)]))
    stacks = draw(st.lists(EXTENTS, max_size=3))
    shapes = []
    for last in ((rows, inner), (inner, columns)):
        own = stacks[draw(st.integers(0, len(stacks))) :]
        shapes.append((*(1 if draw(st.integers(0, 3)) == 0 else each for each in own), *last))
    if draw(st.integers(0, 4)) == 0:
        shapes[0] = (inner,)
    if draw(st.integers(0, 4)) == 0:
        shapes[1] = (inner,)
    kind = draw(st.sampled_from(KINDS))
    kinds = [kind, draw(st.sampled_from([kind, kind, kind, "i2", "f"]))]
    return [filled(draw, shape, each) for shape, each in zip(shapes, kinds, strict=True)]


@settings(max_examples=400, deadline=None)
@given(pairs=pairs(), data=st.data())
def test_products_of_every_layout_and_dtype_are_numpys(blas, pairs, data):
    a, b = pairs
    wanted = np.matmul(a, b)
    if wanted.dtype.kind not in "fc":
        return
    order = data.draw(st.permutations(range(wanted.ndim)))
    call = called(np.matmul, wanted.dtype)
    assert device_products.computes(call)
    found, _, _ = multiplied(blas, call, a, b, order, wanted.shape)
    np.testing.assert_array_equal(found, wanted)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_contractions_by_labels_are_numpys(blas, data):
    labels = data.draw(st.permutations("abcde"))
    count = data.draw(st.integers(2, 5))
    sizes = {label: data.draw(st.integers(1, 4)) for label in labels}
    places = {label: data.draw(st.sampled_from(["both", "left", "right", "inner"])) for label in labels[:count]}
    left = [label for label, place in places.items() if place != "right"]
    right = [label for label, place in places.items() if place != "left"]
    result = [label for label, place in places.items() if place != "inner"]
    terms = ["".join(data.draw(st.permutations(each))) for each in (left, right, result)]
    a, b = (filled(data.draw, tuple(sizes[each] for each in term), "d") for term in terms[:2])
    wanted = np.einsum(f"{terms[0]},{terms[1]}->{terms[2]}", a, b)
    found, _, _ = multiplied(blas, called(Contraction(*terms), "d"), a, b, None, wanted.shape)
    np.testing.assert_array_equal(found, wanted)


OTHERS = [
    (np.dot, (3, 4), (2, 4, 5)), (np.dot, (4,), (4, 5)), (np.dot, (2, 3, 4), (4,)), (np.inner, (3, 4), (2, 5, 4)),
    (np.tensordot, (2, 3, 4), (3, 4, 5)), (np.vecdot, (5, 1, 4), (3, 4)), (np.matmul, (4, 0), (0, 5)),
    (np.matmul, (0, 4), (4, 5)),
]  # fmt: skip
if hasattr(np, "matvec"):  # NumPy 2.2 and later
    OTHERS += [(np.matvec, (2, 3, 4), (5, 1, 4)), (np.vecmat, (5, 1, 4), (2, 4, 3))]


@pytest.mark.parametrize(("function", "first", "second"), OTHERS)
def test_other_functions_have_their_own_axes(blas, function, first, second):
    a, b = (np.arange(np.prod(shape, dtype=int)).reshape(shape) - 5.0 for shape in (first, second))
    wanted = function(a, b)
    found, _, copies = multiplied(blas, called(function, "d"), a, b, None, wanted.shape)
    np.testing.assert_array_equal(found, wanted)
    assert copies == 0 or function is np.tensordot


AXES = [
    (0, (4, 5)), (1, (4, 5, 4)), (2, (3, 4, 4)), ((1, 0), (3, 5, 4)), (([0, -1], [1, 0]), (4, 5, 4)),
    (((-3, 2), (0, 1)), (5, 4, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("axes", "shape"), AXES)
def test_contracted_axes_may_be_any(blas, axes, shape):
    a, b = (np.arange(float(np.prod(each))).reshape(each) for each in ((5, 3, 4), shape))
    wanted = np.tensordot(a, b, axes)
    for call in (called(np.tensordot, "d", axes), called(np.tensordot, "d", axes=axes)):
        np.testing.assert_array_equal(multiplied(blas, call, a, b, None, wanted.shape)[0], wanted)


@pytest.mark.parametrize("axis", [-1, -2, 0])
def test_vectors_may_lie_along_any_axis_and_are_conjugated(blas, axis):
    a, b = (np.arange(24).reshape(shape) * (1 + 2j) - 4j for shape in ((2, 3, 4), (2, 3, 4)))
    wanted = np.vecdot(a, b, axis=axis)
    found, _, _ = multiplied(blas, called(np.vecdot, "D", axis=axis), a, b, None, wanted.shape)
    np.testing.assert_array_equal(found, wanted)
    wanted = np.vecmat(a[..., :3], b[:, None])
    found, _, _ = multiplied(blas, called(np.vecmat, "D"), a[..., :3], b[:, None], None, wanted.shape)
    np.testing.assert_array_equal(found, wanted)


def test_narrow_operands_may_have_wide_results(blas):
    a, b = (np.arange(12).reshape(shape).astype(ml_dtypes.bfloat16) for shape in ((3, 4), (4, 3)))
    for dtype in (np.float32, ml_dtypes.bfloat16):
        found, _, copies = multiplied(blas, called(np.matmul, dtype), a, b, None, (3, 3))
        np.testing.assert_array_equal(found, (a.astype("f") @ b.astype("f")).astype(dtype))
        assert copies == 0


@pytest.mark.parametrize("turned", range(8))
def test_transposed_matrices_are_read_as_they_lie(blas, turned):
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    a = np.asfortranarray(a) if turned & 1 else a
    b = np.asfortranarray(b) if turned & 2 else b
    found, calls, copies = multiplied(blas, called(np.matmul, "d"), a, b, [1, 0] if turned & 4 else None, (2, 4))
    np.testing.assert_array_equal(found, a @ b)
    assert (calls, copies) == (1, 0)


X = np.arange(2.0 * 3 * 4 * 5).reshape(2, 3, 4, 5)
TURNED = X.swapaxes(2, 3)
STACKS = [
    (X, TURNED, 1), (X, X[0, 0].T, 1), (X[:, :, 1:, :3], X[..., ::2, :3].swapaxes(2, 3), 1),
    (X[:, :1], TURNED[:1], 2), (X[:, 1:], TURNED[:, 1:], 2), (X[:, :, 2:3], TURNED, 1), (X, X[0, 0, 0], 1),
    (X[0, 0, 0], TURNED, 1), (X[:, 1], TURNED[0, 0, :, 1:3], 1),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "wanted"), STACKS)
def test_stacks_take_as_few_calls_as_their_strides_allow(blas, a, b, wanted):
    product = np.matmul(a, b)
    found, calls, copies = multiplied(blas, called(np.matmul, "d"), a, b, None, product.shape)
    np.testing.assert_array_equal(found, product)
    assert (calls, copies) == (wanted, 0)


def test_what_has_no_unit_stride_is_copied(blas):
    a, b = X[0, :, :, 1], X[0, :, :, ::2][0]
    found, _, copies = multiplied(blas, called(np.matmul, "d"), a, b, None, (3, 3))
    np.testing.assert_array_equal(found, a @ b)
    assert copies == 2


def test_integers_and_other_functions_are_not_cublas():
    for call in (called(np.matmul, "i4"), called(np.matmul, "d", axes=[(0, 1)] * 3), called(np.kron, "d")):
        assert not device_products.computes(call)


def test_failures_are_named(blas, monkeypatch):
    monkeypatch.setenv("FUSEC_STUB_FAIL", "cublasGemmEx_64=15")
    with pytest.raises(
        RuntimeError, match=r"refused to multiply matrices \(1, 2, 3\): CUBLAS_STATUS_NOT_SUPPORTED"
    ) as caught:
        multiplied(blas, called(np.matmul, "d"), np.ones((1, 2)), np.ones((2, 3)), None, (1, 3))
    assert caught.value.code == "F369"
