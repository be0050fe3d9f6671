"""Every door takes every kind of argument alike: as docs/arguments.md says, or with a catalogued error."""

import array
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import fusec
from fusec import FusecError
from fusec.errors.base import CATALOGUE

PAGE = (Path(__file__).parents[2] / "docs" / "arguments.md").read_text()
BASE = np.array([2.0, 0.5, -1.25, 4.0, 3.0])


# --- stand-ins for other libraries ------------------------------------------------------------------------------------


class Plain:
    """An object that NumPy can make an array of, and no more."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype)


class Wrapping(Plain):
    """A container by `__array_wrap__`."""

    def __array_wrap__(self, values, context=None, return_scalar=False):
        return Wrapping(values)


class OldWrapping(Plain):
    """The same as NumPy 1 called it."""

    def __array_wrap__(self, values):
        return OldWrapping(values)


class Handling(Plain):
    """A container by `__array_ufunc__`, which also hands out whole results."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **options):
        arrays = [each.values if isinstance(each, Handling) else each for each in inputs]
        found = getattr(ufunc, method)(*arrays, **({"out": out} if out else {}), **options)
        if out:
            return found
        return tuple(map(Handling, found)) if ufunc.nout > 1 else Handling(found)


class CallsOnly(Handling):
    """One that knows element-wise calls alone, as xarray does, and has the other protocol for the rest."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        if method != "__call__":
            raise NotImplementedError(method)
        return super().__array_ufunc__(ufunc, method, *inputs, **options)

    def __array_wrap__(self, values, context=None, return_scalar=False):
        return Handling(values)


class Declining(Plain):
    """A container that knows no function but NumPy's."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return NotImplemented


class Refusing(Plain):
    """A container that wants no ufuncs at all."""

    __array_ufunc__ = None


class Failing(Plain):
    """A container that fails."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        raise ZeroDivisionError("labels")


class Categories(Plain):
    """A pandas Series of categories, which have no arithmetic."""

    dtype = "category"

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        raise TypeError("Object with dtype category cannot perform the numpy op")


class Extension(Plain):
    """A pandas Series of a dtype that NumPy reads as objects."""

    def __init__(self, dtype):
        self.dtype = dtype

    def __array__(self, dtype=None, copy=None):
        return np.array(["a", None], object)


class ExtensionOfNumPy(Extension):
    """One that hands its ufuncs objects, as pandas does."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return ufunc(np.asarray(self), **options)


class Lent:
    """Memory by DLPack."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class Unlent(Lent, Plain):
    """An array whose DLPack does not work, as for a dtype that DLPack has not."""

    def __dlpack__(self, **options):
        raise BufferError("no such dtype")


class Shown:
    """Memory by `__array_interface__`."""

    def __init__(self, values):
        self.values = values
        self.__array_interface__ = values.__array_interface__


class Own(np.ndarray):
    """A subclass of ndarray."""


def read_only(values):
    made = values.copy()
    made.flags.writeable = False
    return made


def mapped(values):
    made = np.memmap(__file__, np.uint8, "r", shape=(8 * values.size,)).view(np.float64)
    made = np.frombuffer(bytearray(values.tobytes())).view(type(made))
    assert isinstance(made, np.memmap)
    return made


def torch_tensor(values):
    return pytest.importorskip("torch").tensor(values)


def series(values):
    pandas = pytest.importorskip("pandas")
    return pandas.Series(values, index=[f"row {at}" for at in range(len(values))], name="height")


def data_array(values):
    return pytest.importorskip("xarray").DataArray(values, {"at": 10 * np.arange(len(values))}, ("at",), "height")


def is_ndarray(found, expected):
    return type(found) is np.ndarray


def is_a(kind):
    return lambda found, expected: type(found) is kind


def is_labelled(found, expected):
    return found.name == "height" and list(map(str, next(iter(found.coords.values())).values)) == list(
        map(str, 10 * np.arange(BASE.size))
    )


def is_series(found, expected):
    return found.name == "height" and list(found.index) == [f"row {at}" for at in range(BASE.size)]


# --- kinds that are taken: how one is made, and what holds results of its shape ---------------------------------------

TAKEN = {
    "an ndarray": (np.copy, is_ndarray),
    "a list": (np.ndarray.tolist, is_ndarray),
    "a tuple": (lambda values: tuple(values.tolist()), is_ndarray),
    "a list of NumPy scalars": (list, is_ndarray),
    "a read-only array": (read_only, is_ndarray),
    "another byte order": (lambda values: values.astype(values.dtype.newbyteorder()), is_ndarray),
    "a memmap": (mapped, is_ndarray),
    "an own subclass": (lambda values: values.view(Own), is_a(Own)),
    "a memoryview": (memoryview, is_ndarray),
    "an array.array": (lambda values: array.array("d", values), is_ndarray),
    "__array__": (Plain, is_ndarray),
    "__array_wrap__": (Wrapping, is_a(Wrapping)),
    "__array_wrap__ of NumPy 1": (OldWrapping, is_a(OldWrapping)),
    "__array_ufunc__": (Handling, is_a(Handling)),
    "__array_ufunc__ for calls alone": (CallsOnly, is_a(Handling)),
    "__array_interface__": (Shown, is_ndarray),
    "DLPack": (Lent, is_ndarray),
    "DLPack that fails": (Unlent, is_ndarray),
    "PyTorch": (torch_tensor, lambda found, expected: type(found).__module__ == "torch"),
    "pandas": (series, is_series),
    "xarray": (data_array, is_labelled),
}


# --- doors: what is called, and NumPy's answer ------------------------------------------------------------------------


def texts(expression):
    return lambda x: fusec.evaluate(expression, {"x": x})


def written(x):
    made = np.zeros(BASE.size)
    COPY(x, made)
    return made


def rows(values):
    power = np.exp(values - values.max())
    return power / power.sum()


def normed(values):
    return (values - values.mean()) / np.sqrt(values.var() + 1e-5)


TWICE = fusec.ElementwiseKernel("T x", "T y", "y = x + x", "twice")
INDEXED = fusec.ElementwiseKernel("T x", "T y", "y = x + i", "indexed")
BOTH = fusec.ElementwiseKernel("T x", "T y, T z", "y = x + x; z = -x", "both")
COPY = fusec.kernel(
    "def copy_of(x, y):\n    for i in fusec.grid(y.shape[0]):\n        y[i] = x[i]", names={"fusec": fusec}
)
TOTAL = fusec.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", "total")
RUNNING = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", name="running")
NEIGHBOURS = fusec.stencil("def neighbours(x):\n    return x[-1] + x[1]")
OUTER = np.array([0.5, 0.75, 4.5, 1.75, 4.0])

ELEMENTS = {
    "ElementwiseKernel": (TWICE, lambda x: x + x),
    "several results": (BOTH, lambda x: (x + x, -x)),
    "elementwise": (fusec.elementwise("def twice(x):\n    return x + x"), lambda x: x + x),
    "vectorize": (fusec.vectorize(fusec.elementwise("def twice(x):\n    return x + x")), lambda x: x + x),
    "evaluate": (texts("x + x"), lambda x: x + x),
    "evaluate with a total": (texts("x - sum(x)"), lambda x: x - x.sum()),
    "NumExpr": (fusec.NumExpr("x + x"), lambda x: x + x),
    "indices": (INDEXED, lambda x: x + np.arange(x.size)),
    "stencil": (NEIGHBOURS, lambda x: OUTER),
    "ScanKernel": (RUNNING, np.cumsum),
    "cumsum": (fusec.cumsum, np.cumsum),
    "cumprod": (fusec.cumprod, np.cumprod),
    "cumulative_sum": (fusec.cumulative_sum, np.cumsum),
    "cumulative_prod": (fusec.cumulative_prod, np.cumprod),
    "cummax": (fusec.cummax, np.maximum.accumulate),
    "cummin": (fusec.cummin, np.minimum.accumulate),
    "logcumsumexp": (fusec.logcumsumexp, lambda x: np.log(np.cumsum(np.exp(x)))),
    "softmax": (fusec.softmax, rows),
    "log_softmax": (fusec.log_softmax, lambda x: np.log(rows(x))),
    "layer_norm": (fusec.layer_norm, normed),
}
TOTALS = {
    **{
        name: (getattr(fusec, name), getattr(np, name))
        for name in """sum prod nansum nanprod any all min max nanmin nanmax ptp argmin argmax nanargmin nanargmax
        mean nanmean var std nanvar nanstd count_nonzero median""".split()
    },
    "norm": (fusec.norm, np.linalg.norm),
    "logsumexp": (fusec.logsumexp, lambda x: np.log(np.exp(x).sum())),
    "mulsum": (lambda x: fusec.mulsum(x, x), lambda x: (x * x).sum()),
    "vecdot": (lambda x: fusec.vecdot(x, x), lambda x: np.dot(x, x)),
    "minmax": (fusec.minmax, lambda x: (x.min(), x.max())),
    "mean_var": (fusec.mean_var, lambda x: (x.mean(), x.var())),
    "reduction": (fusec.reduction("def added(a, b):\n    return a + b"), np.sum),
    "evaluate of a total": (texts("sum(x + x)"), lambda x: (x + x).sum()),
}
OTHERS = {"kernel": (written, np.copy), "ReductionKernel": (TOTAL, np.sum)}
DOORS = ELEMENTS | TOTALS | OTHERS


NATIVE = ("an ndarray", "an own subclass", "another byte order", "__array_ufunc__", "pandas")


def equal(found, expected):
    """Whether values and dtypes are NumPy's."""
    found = np.asarray(found)
    return found.dtype == np.asarray(expected).dtype and np.allclose(found, expected, 1e-12, 1e-15, equal_nan=True)


def parts(found):
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("kind", TAKEN)
@pytest.mark.sampled(5)
def test_every_door_gives_numpys_answer_in_the_container_of_the_argument(kind):
    make, holds = TAKEN[kind]
    for name, (call, reference) in DOORS.items():
        expected = parts(reference(BASE))
        for _ in range(3 if kind in NATIVE else 1):  # later calls may come from native entries
            found = parts(call(make(BASE)))
            assert len(found) == len(expected), name
            for part, wanted in zip(found, expected, strict=True):
                assert equal(part, wanted), name
                if name in ELEMENTS:
                    assert holds(part, wanted), name
                elif name in TOTALS and kind != "PyTorch":
                    assert isinstance(part, np.generic), name


@pytest.mark.parametrize("kind", [kind for kind in TAKEN if not any(word in kind for word in ("list", "tuple"))])
def test_fused_functions_read_the_same_arguments_and_give_arrays(kind):
    squared = fusec.fuse(lambda x: np.square(x) + 1)
    if kind in ("a memoryview", "an array.array"):  # which would have to be read at every call
        with pytest.raises(FusecError, match=r"F282"):
            squared(TAKEN[kind][0](BASE))
        return
    for scale in (1, 2):
        found = squared(TAKEN[kind][0](scale * BASE))
        assert type(found) is np.ndarray
        assert equal(found, np.square(scale * BASE) + 1)


def test_a_fused_function_does_not_write_to_a_copy():
    @fusec.fuse
    def grow(x):
        x += 1

    for kind in ("another byte order", "__array__", "a read-only array"):
        with pytest.raises((FusecError, ValueError), match=r"read-only|dtype '>f8' of parameter 'x'.*F206"):
            grow(TAKEN[kind][0](BASE))


@pytest.mark.parametrize("kind", TAKEN)
def test_the_interpreter_and_reports_read_the_same_arguments(kind):
    make, _ = TAKEN[kind]
    function, total = ELEMENTS["elementwise"][0], TOTALS["reduction"][0]
    assert equal(fusec.simulate(TWICE)(make(BASE)), 2 * BASE)
    assert equal(fusec.simulate(function)(make(BASE)), 2 * BASE)
    assert equal(fusec.simulate(total)(make(BASE)), BASE.sum())
    for called in (TWICE, function, total, TOTAL, RUNNING, NEIGHBOURS):
        assert "float64" in str(called.explain(make(BASE)))


def test_simulated_reductions_take_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    total = TOTALS["reduction"][0]
    x = np.arange(9).astype(ml_dtypes.bfloat16)
    assert fusec.simulate(total)(x) == total(x) == 36


# --- kinds that are refused -------------------------------------------------------------------------------------------

REFUSED = {
    "a masked array": (lambda: np.ma.masked_array(BASE, BASE > 2), "F202", r"\.filled\(value\)"),
    "objects": (lambda: BASE.astype(object), "F206", "objects"),
    "a structured array": (lambda: np.zeros(3, "f8,i4"), "F206", "fields"),
    "text in an array": (lambda: np.array(["a", "b"]), "F206 F504", "text|strings"),
    "bytes in an array": (lambda: np.array([b"a", b"b"]), "F206 F504", "text|strings"),
    "extended precision": (lambda: BASE.astype("longdouble"), "F206", "float64"),
    "text": (lambda: "abc", "F202 F504", "text|strings"),
    "bytes": (lambda: b"abc", "F202 F504", "frombuffer|strings"),
    "NumPy text": (lambda: np.str_("abc"), "F183 F202 F205 F206 F260 F504", ""),
    "a ragged list": (lambda: [[1.0], [2.0, 3.0]], "F202", "inhomogeneous"),
    "integers beyond 64 bits": (lambda: [1 << 70, 1], "F206", "objects"),
    "None": (lambda: None, "F202", ""),
    "a dictionary": (dict, "F202", "__array__"),
    "a set": (lambda: {1.0, 2.0}, "F202", "__array__"),
    "a generator": (lambda: (each for each in BASE), "F202", "__array__"),
    "a class": (lambda: np.ndarray, "F194 F202", ""),
    "an object": (object, "F202", "__array__"),
    "a container that declines": (lambda: Declining(BASE), "F800", "np.asarray"),
    "a container without ufuncs": (lambda: Refusing(BASE), "F800", "np.asarray"),
    "a container that fails": (lambda: Failing(BASE), "F801", "ZeroDivisionError: labels"),
    "categories": (lambda: Categories(BASE), "F206", r"x\.cat\.codes"),
}
WHOLE = ("a container that declines", "a container without ufuncs", "a container that fails", "categories")


@pytest.mark.parametrize("kind", REFUSED)
def test_every_door_refuses_the_rest_by_name(kind):
    make, codes, said = REFUSED[kind]
    for name, (call, _) in DOORS.items():
        if kind in WHOLE and name in TOTALS | OTHERS:
            continue  # these read numpy.asarray(x), whatever ufuncs would do
        if kind == "a container that declines" and not isinstance(call(Plain(BASE)), tuple) and name in WHOLES:
            continue
        with pytest.raises(FusecError) as caught:
            call(make())
        assert caught.value.error.code in (*codes.split(), "F508"), name
        assert caught.value.error.code in CATALOGUE
        assert re.search(said, str(caught.value)) or caught.value.error.code == "F508", name


WHOLES = set(ELEMENTS) - {"ElementwiseKernel", "several results", "elementwise", "vectorize", "evaluate", "NumExpr"}


def test_a_masked_array_among_others_is_refused_by_every_door():
    x, masked = BASE, np.ma.masked_array(BASE, BASE > 2)
    added = fusec.ElementwiseKernel("T x, T y", "T z", "z = x + y", "added")
    for call in (
        lambda: added(x, masked),
        lambda: fusec.evaluate("x + y", {"x": x, "y": masked}),
        lambda: fusec.sum(x, where=np.ma.masked_array(x > 0, x > 2)),
        lambda: fusec.layer_norm(x, masked),
        lambda: TWICE(x, masked),
    ):
        with pytest.raises(TypeError, match=r"\.filled\(value\)"):
            call()


# --- several arguments, outputs ---------------------------------------------------------------------------------------


def test_containers_meet_as_in_a_ufunc():
    added = fusec.ElementwiseKernel("T x, T y", "T z", "z = x + y", "added")
    function = fusec.elementwise("def function(x, y):\n    return x + y")
    for call in (added, function, lambda x, y: fusec.evaluate("x + y"), lambda x, y: function(x, y=y)):
        assert type(call(BASE, Wrapping(BASE))) is Wrapping
        assert type(call(Handling(BASE), BASE)) is Handling
        assert type(call([1.0] * 5, Handling(BASE))) is Handling
        assert type(call(Wrapping(BASE), Handling(BASE))) is Handling
        assert equal(call([1.0] * 5, Handling(BASE)).values, 1 + BASE)


def test_a_range_is_a_list_of_integers():
    added = fusec.ElementwiseKernel("T x, T y", "T z", "z = x + y", "added")
    assert fusec.sum(range(5)) == 10
    assert fusec.evaluate("x + 1", {"x": range(3)}).tolist() == [1, 2, 3]
    assert added(range(3), np.arange(3)).tolist() == [0, 2, 4]
    np.testing.assert_array_equal(added(range(3), Handling(np.arange(3))).values, [0, 2, 4])
    assert fusec.ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0", bounds="check")(range(5)) == 10


def test_the_container_of_highest_priority_has_the_results():
    class First(Wrapping):
        __array_priority__ = 5.0

        def __array_wrap__(self, values, context=None, return_scalar=False):
            return First(values)

    added = fusec.ElementwiseKernel("T x, T y", "T z", "z = x + y", "added")
    for pair in ((First(BASE), Wrapping(BASE)), (Wrapping(BASE), First(BASE))):
        assert type(added(*pair)) is First


def test_a_wrapper_that_fails_is_told():
    class Broken(Plain):
        def __array_wrap__(self, values, context=None, return_scalar=False):
            raise KeyError("label")

    with pytest.raises(FusecError, match=r"'twice' fails on a Broken: KeyError: 'label'"):
        TWICE(Broken(BASE))


def test_outputs_are_memory_and_come_back_as_given():
    backing = np.zeros(5)
    buffer = bytearray(40)
    for out in (
        backing,
        Lent(backing),
        Shown(backing),
        memoryview(backing),
        array.array("d", [0] * 5),
        backing.view(Own),
    ):
        if isinstance(out, Lent) and not np.from_dlpack(out).flags.writeable:
            continue  # as older NumPy reads what an exporter from before DLPack 1.0 lends
        assert TWICE(BASE, out) is out
        assert fusec.cumsum(BASE, out=out) is out
        assert fusec.evaluate("x * 2", {"x": BASE}, out=out) is out
        assert TWICE(Handling(BASE), out) is out
        seen = np.from_dlpack(out) if isinstance(out, Lent) else np.asarray(out)
        assert equal(seen, 2 * BASE)
    TWICE(BASE, np.frombuffer(buffer))
    assert equal(np.frombuffer(buffer), 2 * BASE)


@pytest.mark.parametrize("out", [[0.0] * 5, Plain(BASE), {}, "text", 5])
def test_outputs_that_are_no_memory_are_refused(out):
    for call in (
        lambda: TWICE(BASE, out),
        lambda: TWICE(BASE, out=(out,)),
        lambda: RUNNING(BASE, out),
        lambda: TOTAL(BASE, out=(out,)),
        lambda: fusec.elementwise("def f(x):\n    return x")(BASE, out=(out,)),
        lambda: COPY(BASE, out),
    ):
        with pytest.raises(FusecError) as caught:
            call()
        assert caught.value.error.code in ("F183", "F203"), out


def test_outputs_that_cannot_be_written_are_refused():
    for out, code in ((read_only(BASE), "F221"), (BASE.astype(">f8"), "F206"), (memoryview(read_only(BASE)), "F221")):
        for call in (
            lambda out: TWICE(BASE, out),
            lambda out: RUNNING(BASE, out),
            lambda out: TOTAL(BASE[None], out, axis=0),
            lambda out: COPY(BASE, out),
        ):
            with pytest.raises(FusecError) as caught:
                call(out)
            assert caught.value.error.code == code


# --- results ----------------------------------------------------------------------------------------------------------


def test_totals_are_numpy_scalars_that_hash_and_print():
    for x in (BASE, BASE.tolist(), BASE.reshape(5, 1), BASE.astype("f4"), np.arange(3), np.array(2.0), 2.5):
        for name in ("sum", "mean", "var", "argmax", "median", "max", "count_nonzero"):
            found, expected = getattr(fusec, name)(x), getattr(np, name)(x)
            assert type(found) is type(expected) or name == "count_nonzero"
            assert {found: 1}[found] == 1
        assert json.dumps({"mean": fusec.mean(np.asarray(x, "f8"))})
    assert isinstance(fusec.sum(BASE, axis=0), np.float64)
    assert fusec.sum(BASE, keepdims=True).shape == (1,)
    assert isinstance(fusec.sum(np.array(2.0), keepdims=True), np.float64)
    out = np.empty(())
    assert fusec.sum(BASE, out=out) is out


@pytest.mark.parametrize(
    ("most", "call"),
    [
        (9, TWICE),
        (9, ELEMENTS["elementwise"][0]),
        (12, fusec.sum),
        (12, lambda x: fusec.cumsum(x, axis=0)),
        (10, fusec.fuse(lambda x: x * 2 + 1)),
        (10, fusec.fuse(lambda x: (x * 2 + 1).sum())),
        (6, lambda x: fusec.evaluate("sum(x)", {"x": x})),
    ],
)
def test_a_repeated_call_with_plain_arrays_reads_nothing_anew(most, call):
    x, names = np.ones((4, 5)), []

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename != __file__:
            names.append(frame.f_code.co_name)

    for _ in range(2):
        call(x)
    sys.setprofile(note)
    try:
        call(x)
    finally:
        sys.setprofile(None)
    assert len(names) <= most, names


def test_reductions_of_kernels_keep_cupys_arrays_without_axes():
    for _ in range(4):
        assert type(TOTAL(BASE)) is np.ndarray
        assert TOTAL(BASE).shape == ()


def test_otypes_convert_in_the_container():
    halved = fusec.vectorize(fusec.elementwise("def halved(x):\n    return x / 2"), otypes="f")
    assert halved(BASE.tolist()).dtype == np.float32
    for kind in (Wrapping, Handling):
        found = halved(kind(BASE))
        assert equal(found, (BASE / 2).astype("f4"))
    for kind in ("PyTorch", "pandas"):
        assert "float32" in str(halved(TAKEN[kind][0](BASE)).dtype)


# --- dates ------------------------------------------------------------------------------------------------------------

DATES = np.array([["2020-01-03", "2021-05-01"], ["2019-12-31", "2020-02-29"]], "M8[D]")
DURATIONS = np.array([[5, -3], [7, 0]], "m8[ms]")
WITH_MEANING = """min max ptp argmin argmax any all count_nonzero nanmin nanmax""".split()


def missing(x):
    made = x.copy()
    made[1, 0] = "NaT"
    return made


def same(found, expected):
    return found.dtype == expected.dtype and type(found) is type(expected) and np.array_equal(
        np.asarray(found).view("i8"), np.asarray(expected).view("i8")
    )  # fmt: skip


@pytest.mark.parametrize("x", [DATES, DURATIONS, missing(DATES), missing(DURATIONS)])
def test_dates_and_durations_keep_their_unit_and_what_is_missing(x):
    names = [*WITH_MEANING, *(("sum", "mean", "median") if x.dtype.kind == "m" else ())]
    for name in names:
        mine, numpys = getattr(fusec, name), getattr(np, name)
        for options in ({}, {"axis": 0}, {"axis": -1, "keepdims": True}):
            found, expected = mine(x, **options), numpys(x, **options)
            if np.asarray(expected).dtype == bool or name == "count_nonzero":
                assert np.array_equal(found, expected), name
            else:
                assert same(found, expected), name
    for mine, numpys in ((fusec.cummax, np.maximum.accumulate), (fusec.cummin, np.minimum.accumulate)):
        assert same(mine(x, axis=1), numpys(x, axis=1))
        out = np.empty_like(x)
        assert mine(x, axis=0, out=out) is out
        assert same(out, numpys(x, axis=0))
    low, high = fusec.minmax(x, axis=0)
    assert same(low, np.min(x, axis=0))
    assert same(high, np.max(x, axis=0))


def test_durations_have_sums_that_run():
    x = missing(DURATIONS)
    assert same(fusec.cumsum(x, axis=1), np.cumsum(x, axis=1))
    assert same(fusec.cumsum(x), np.cumsum(x))
    assert (
        fusec.cumulative_sum(x, axis=1, include_initial=True).tolist() == np.insert(np.cumsum(x, 1), 0, 0, 1).tolist()
    )
    out = np.empty((), "m8[us]")
    assert fusec.sum(DURATIONS, out=out) is out
    assert out == DURATIONS.sum()
    assert fusec.sum(DURATIONS, where=np.timedelta64(0) < DURATIONS) == np.timedelta64(12, "ms")
    assert fusec.max(DATES, initial=np.datetime64("2030-01-01")) == np.datetime64("2030-01-01")


def test_what_means_nothing_of_dates_is_refused_by_name():
    for name in "prod var std mean_var norm logsumexp nansum nanmean nanargmax softmax cumprod logcumsumexp".split():
        for x in (DATES, DURATIONS):
            with pytest.raises(FusecError, match=r"datetime64|timedelta64") as caught:
                getattr(fusec, name)(x)
            assert caught.value.error.code in ("F206", "F802")
    for name in ("sum", "mean", "median", "cumsum"):
        with pytest.raises(FusecError, match="dates have no sum"):
            getattr(fusec, name)(DATES)
    with pytest.raises(FusecError, match=r"np\.asarray\(x\)\.view\('int64'\)"):
        TWICE(DATES)
    with pytest.raises(FusecError) as caught:
        fusec.min(DATES[:0])
    assert caught.value.error.code == "F802"
    with pytest.raises(FusecError):
        fusec.min(DATES, axis=2)


@pytest.mark.parametrize(
    ("dtype", "hint"),
    [
        ("category", "pass the codes, x.cat.codes"),
        ("datetime64[ns, UTC]", "write x.dt.tz_convert(None)"),
        ("period[D]", "write x.dt.to_timestamp()"),
        ("interval[int64, right]", "pass the ends"),
        ("string", "text is not a number"),
        ("boolean", "write x.to_numpy('float64', na_value=np.nan)"),
    ],
)
def test_a_dtype_of_pandas_that_numpy_reads_as_objects_is_named_with_its_cure(dtype, hint):
    for container in (Extension, ExtensionOfNumPy):
        for call in (TWICE, NEIGHBOURS, fusec.sum, lambda x: fusec.evaluate("x + 1"), fusec.fuse(lambda x: x + 1)):
            with pytest.raises(FusecError) as caught:
                call(container(dtype))
            assert (caught.value.code, caught.value.error.given) == ("F206", dtype)
            assert caught.value.hint.startswith(hint)


# --- the real ones ----------------------------------------------------------------------------------------------------


def test_pandas_aligns_and_keeps_what_is_missing():
    pandas = pytest.importorskip("pandas")
    left, right = pandas.Series([1.0, 2.0], ["a", "b"]), pandas.Series([10.0, 20.0], ["b", "c"])
    function = fusec.elementwise("def function(x, y):\n    return x + y")
    pandas.testing.assert_series_equal(function(left, right), left + right)
    pandas.testing.assert_series_equal(fusec.evaluate("left + right"), left + right)
    missing = pandas.Series([1, None, 3], dtype="Int64")
    pandas.testing.assert_series_equal(TWICE(missing), missing + missing)
    assert NEIGHBOURS(missing).isna().tolist() == [True, False, True]
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}, index=["x", "y"])
    pandas.testing.assert_frame_equal(TWICE(frame), frame * 2)
    pandas.testing.assert_frame_equal(fusec.cumsum(frame, axis=0), frame.cumsum())
    pandas.testing.assert_frame_equal(fusec.cumsum(frame, axis=1), frame.cumsum(axis=1))
    pandas.testing.assert_frame_equal(fusec.evaluate("frame - sum(frame, axis=0)"), frame - frame.sum(axis=0))
    with pytest.raises(FusecError, match=r"objects cannot be computed on|text is not a number"):
        TWICE(pandas.DataFrame({"a": [1.0], "b": ["x"]}))
    with pytest.raises(FusecError, match=r"x\.cat\.codes"):
        TWICE(pandas.Series(["a", "b"], dtype="category"))


def test_xarray_broadcasts_by_name():
    xarray = pytest.importorskip("xarray")
    left, right = xarray.DataArray([1.0, 2.0], dims="x"), xarray.DataArray([3.0, 4.0, 5.0], dims="y")
    function = fusec.elementwise("def function(x, y):\n    return x + y")
    xarray.testing.assert_identical(function(left, right), left + right)


def test_torch_says_why_a_tensor_is_not_shared():
    torch = pytest.importorskip("torch")
    for call, _ in DOORS.values():
        with pytest.raises(FusecError, match="detach"):
            call(torch.tensor(BASE, requires_grad=True))


def test_no_library_of_containers_is_imported():
    import subprocess

    program = (
        "import sys, numpy as np, fusec\n"
        "fusec.ElementwiseKernel('T x', 'T y', 'y = x')([1.0]); fusec.cumsum([1.0]); fusec.evaluate('x', {'x': [1]})\n"
        "assert not {'pandas', 'xarray', 'torch', 'numpy.ma'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_the_page_shows_runs():
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(block, names)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "logcumsumexp"])
def test_scans_of_all_elements_go_back_to_the_class_of_their_array(name):
    class Own(np.ndarray):
        pass

    values, scan = np.array([[1.0, 3.0], [2.0, 4.0]]), getattr(fusec, name)
    plain = scan(values)
    for given, shape in ((np.matrix(values), (1, 4)), (values.view(Own), (4,))):
        found, out = scan(given), np.empty(4)
        assert type(found) is type(given)
        assert found.shape == shape
        np.testing.assert_array_equal(np.asarray(found).ravel(), plain)
        assert scan(given, out=out) is out
        np.testing.assert_array_equal(out, plain)
