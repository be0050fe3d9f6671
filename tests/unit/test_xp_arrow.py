"""Arrow's C data interface: the structures are read as a consumer reads them, who copies, uses and releases them."""

import ctypes
import gc
import sys
import weakref

import numpy as np
import pytest

import fusec.xp as xp
from fusec.errors import FusecTypeError
from fusec.xp.arrow import FORMATS, ArrowArray, ArrowSchema

pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def taken(capsule, kind, name):
    """A copy of the structure in a capsule, which is emptied, as the interface has consumers do."""
    source = kind.from_address(pointer_of(capsule, name))
    assert source.release
    copy = kind.from_buffer_copy(source)
    source.release = None
    return copy


def released(one):
    RELEASE(one.release)(ctypes.addressof(one))
    assert not one.release


def read(x):
    """The format and the elements of an array, by its capsules."""
    schema, array = x.__arrow_c_array__()
    kind, one = taken(schema, ArrowSchema, b"arrow_schema"), taken(array, ArrowArray, b"arrow_array")
    del schema, array, x
    gc.collect()
    assert (one.null_count, one.offset, one.n_buffers, one.n_children, kind.n_children) == (0, 0, 2, 0, 0)
    assert (kind.flags, kind.dictionary, one.dictionary, kind.metadata) == (0, None, None, None)
    buffers = (ctypes.c_void_p * 2).from_address(one.buffers)
    assert buffers[0] is None
    text = kind.format.decode()
    dtype = np.dtype(next(each for each, known in FORMATS.items() if known == text))
    nbytes = (one.length + 7) // 8 if text == "b" else one.length * dtype.itemsize
    found = np.frombuffer(ctypes.string_at(buffers[1], nbytes), np.uint8 if text == "b" else dtype)
    if text == "b":
        found = np.unpackbits(found, bitorder="little", count=one.length).astype(bool)
    released(kind)
    released(one)
    return text, found


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        ("i1", "c"), ("u1", "C"), ("i2", "s"), ("u2", "S"), ("i4", "i"), ("u4", "I"), ("i8", "l"), ("u8", "L"),
        ("f2", "e"), ("f4", "f"), ("f8", "g"), ("?", "b"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [0, 1, 8, 13])
def test_arrays_of_one_axis_are_read_as_they_are(dtype, text, size):
    values = (np.arange(size) % 3).astype(dtype)
    for x in (xp.asarray(values), xp.asarray(values)[::-1], xp.asarray(np.repeat(values, 2))[::2]):
        form, found = read(x)
        assert (form, found.dtype) == (text, values.dtype)
        np.testing.assert_array_equal(found, np.asarray(x))
    np.testing.assert_array_equal(read(xp.asarray(np.arange(4.0)) * 2)[1], [0, 2, 4, 6])  # pending


def test_integers_of_any_name_have_the_format_of_their_size():
    assert {read(xp.asarray(np.arange(3, dtype=each)))[0] for each in (np.long, np.longlong, np.int64)} == {"l"}


def test_the_memory_of_dense_arrays_is_shared_and_lives_until_it_is_released():
    values = np.arange(5.0)
    gone = weakref.ref(values)
    x = xp.asarray(values)
    kept = taken(x.__arrow_c_array__()[1], ArrowArray, b"arrow_array")
    assert (ctypes.c_void_p * 2).from_address(kept.buffers)[1] == values.ctypes.data
    x += 1.0
    x.compute()
    assert np.frombuffer(ctypes.string_at(values.ctypes.data, 40)).tolist() == [1, 2, 3, 4, 5]
    del values, x
    gc.collect()
    assert gone() is not None
    released(kept)
    gc.collect()
    assert gone() is None


def test_capsules_that_nobody_takes_release_what_they_hold():
    values = np.arange(1000.0)
    before = sys.getrefcount(values)
    for _ in range(50):
        xp.asarray(values).__arrow_c_array__()
    gc.collect()
    assert sys.getrefcount(values) <= before + 1


def test_what_arrow_has_no_form_for_is_refused():
    for x in (xp.ones((2, 3)), xp.ones(()), xp.ones(3, dtype=xp.complex64)):
        with pytest.raises(FusecTypeError, match=r"F783(.|\n)*reshape"):
            x.__arrow_c_array__()


def test_pyarrow_takes_arrays():
    arrow = pytest.importorskip("pyarrow")
    assert arrow.array(xp.asarray([1, 2, 3])).to_pylist() == [1, 2, 3]
    assert arrow.array(xp.asarray([True, False, True])).to_pylist() == [True, False, True]
