"""dtypes are values that a kernel knows when it is compiled, and attributes of objects from outside are constants."""

import inspect
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

import fusec
from fusec.errors import FusecError, FusecTypeError

INTEGERS, FLOATS = np.arange(-6, 7, dtype="int8"), np.linspace(-3, 3, 13, dtype="float32")


class Grid(NamedTuple):
    spacing: float
    dtype: np.dtype


class Limits:
    LEAST = -2


settings = SimpleNamespace(scale=np.float32(0.1), inner=SimpleNamespace(shift=3), names=["a"])
grid = Grid(0.5, np.dtype("float64"))
table = np.zeros((3, 4), "int16")
KIND = np.float32


def ufuncs(x, y):
    kind = np.dtype(KIND)
    return (
        np.add(x, y, dtype=kind),
        np.multiply(x, 2, dtype=kind),
        np.subtract(y, x, dtype=kind.type),
        np.negative(x, dtype="KIND"),
        np.square(x, dtype=None),
        np.less(x, y, dtype=bool),
    )


@pytest.mark.parametrize(
    ("kind", "x", "y"),
    [("int16", INTEGERS, INTEGERS[::-1]), ("float16", INTEGERS, FLOATS), ("complex64", FLOATS, INTEGERS)],
)
def test_ufuncs_compute_in_the_dtype_asked_for_as_numpys_do(kind, x, y):
    text = inspect.getsource(ufuncs).replace('"KIND"', repr(kind))
    names = {"np": np, "KIND": np.dtype(kind).type}
    found = fusec.elementwise(text, names=names)(x, y)
    exec(text, names)
    for ours, numpys in zip(found, names["ufuncs"](x, y), strict=True):
        assert ours.dtype == numpys.dtype
        np.testing.assert_array_equal(ours, numpys)


@pytest.mark.parametrize(
    "text",
    [
        "np.add(x, 1, dtype=np.int32)",
        "np.add(n, 1, dtype=np.uint8)",
        "np.sqrt(n, dtype=np.int8)",
        "np.less(x, 1, dtype=np.float32)",
        "np.divide(n, 2, dtype=np.int8)",
        "np.add(x, 1j, dtype=np.float32)",
        "np.add(x, 1, dtype='float33')",
        "np.add(x, 1, dtype=2)",
        "np.dtype(x)",
        "x.astype('single precision')",
    ],
)
def test_what_numpy_refuses_to_compute_in_a_dtype_is_a_type_error(text):
    with pytest.raises(TypeError):
        eval(text, {"np": np, "x": FLOATS, "n": INTEGERS})
    with pytest.raises(FusecTypeError):
        fusec.elementwise(f"def f(x, n): return {text}")(FLOATS, INTEGERS)


def test_dtypes_have_names_and_choose_what_is_compiled():
    @fusec.elementwise
    def halved(x):
        single = np.dtype("f").type
        if x.dtype == np.int8:
            return single(x // 2), x.dtype.type(1)
        return single(x) / 2, x.astype("int8")

    for x, first, second in [(INTEGERS, INTEGERS // 2, 1), (FLOATS, FLOATS / 2, FLOATS.astype("int8"))]:
        ours = halved(x)
        assert [each.dtype for each in ours] == [np.float32, np.int8]
        np.testing.assert_array_equal(ours, [first, np.broadcast_to(second, x.shape)])


def test_a_dtype_is_no_result():
    with pytest.raises(FusecTypeError, match="the type float32 is not a value"):
        fusec.elementwise("def f(x): return np.float32")(FLOATS)


def test_attributes_of_objects_are_constants_from_the_definition_on(monkeypatch):
    local = SimpleNamespace(offset=1)

    @fusec.elementwise
    def f(x):
        return x * settings.scale + settings.inner.shift + local.offset, grid.dtype.type(Limits.LEAST), table.shape[1]

    monkeypatch.setattr(settings, "scale", 7)
    local.offset = 100
    value, least, columns = f(FLOATS)
    np.testing.assert_array_equal(value, FLOATS * np.float32(0.1) + 3 + 1)
    assert value.dtype == np.float32
    assert (least.dtype, least[0], columns[0]) == (np.float64, -2, 4)


def test_attributes_that_are_no_constants_are_refused_by_name():
    def of(expression):
        return fusec.elementwise(f"def f(x): return x + {expression}", names=globals())(FLOATS)

    with pytest.raises(FusecError, match=r"'settings\.names' is a list"):
        of("settings.names")
    with pytest.raises(FusecError, match="did you mean 'scale'"):
        of("settings.scall")
    with pytest.raises(FusecError, match=r"an array of int16 has no member 'sum'"):
        of("table.sum()")
    with pytest.raises(FusecError, match="'Limits' is a type"):
        of("Limits")


OF_TWO = "hypot arctan2 copysign nextafter logaddexp logaddexp2 heaviside fmod float_power".split()
CASES = [("uint8", 70000.0), *((dtype, number) for dtype in ("bool", "int16", "float32") for number in (3, 2.5, True))]


@pytest.mark.parametrize(
    ("dtype", "number"), [pytest.param(*each, marks=pytest.mark.slow if at else ()) for at, each in enumerate(CASES)]
)
def test_floats_of_arrays_and_numbers_are_numpys(dtype, number):
    x = np.array([1, 0, 1, 1] if dtype == "bool" else [1, 2, 5, 7], dtype)
    results = ", ".join(f"np.{name}(x, y), np.{name}(y, x)" for name in OF_TWO)
    found = fusec.elementwise(f"def f(x, y): return {results}", names={"np": np})(x, number)
    with np.errstate(all="ignore"):
        wanted = [getattr(np, name)(*args) for name in OF_TWO for args in ((x, number), (number, x))]
    for name, ours, theirs in zip(np.repeat(OF_TWO, 2), found, wanted, strict=True):
        assert ours.dtype == theirs.dtype, name
        tolerance = 4 * np.finfo(theirs.dtype).eps if theirs.dtype.kind == "f" else 0
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, err_msg=name)
