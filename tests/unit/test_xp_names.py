"""The names and signatures of fusec.xp are the standard's, and each function is explained by an example that runs."""

import ast
import copy
import doctest
import inspect
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

import fusec
import fusec.xp as xp

SIGNATURES = {
    "": "__array_namespace_info__",
    "x, /": "abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf"
    " isnan linalg.det linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh linalg.inv linalg.matrix_transpose"
    " linalg.slogdet linalg.svdvals log log10 log1p log2 logical_not matrix_transpose negative nonzero positive real"
    " reciprocal round sign signbit sin sinh sqrt square tan tanh trunc unique_all unique_counts unique_inverse"
    " unique_values",
    "x1, x2, /": "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide"
    " equal floor_divide greater greater_equal hypot less less_equal linalg.matmul linalg.outer linalg.solve logaddexp"
    " logical_and logical_or logical_xor matmul maximum minimum multiply nextafter not_equal pow remainder subtract",
    "*arrays": "broadcast_arrays",
    "*arrays, indexing='xy'": "meshgrid",
    "*arrays_and_dtypes": "result_type",
    "*shapes": "broadcast_shapes",
    "arrays, /, *, axis=0": "concat stack",
    "condition, x1, x2, /": "where",
    "dtype, kind": "isdtype",
    "from_, to, /": "can_cast",
    "n, /, *, d=1.0, dtype=None, device=None": "fft.fftfreq fft.rfftfreq",
    "n_rows, n_cols=None, /, *, k=0, dtype=None, device=None": "eye",
    "obj, /, *, dtype=None, device=None, copy=None": "asarray",
    "shape, *, dtype=None, device=None": "empty ones zeros",
    "shape, fill_value, *, dtype=None, device=None": "full",
    "start, /, stop=None, step=1, *, dtype=None, device=None": "arange",
    "start, stop, /, num, *, dtype=None, device=None, endpoint=True": "linspace",
    "type, /": "finfo iinfo",
    "x, /, *, axes=None": "fft.fftshift fft.ifftshift",
    "x, /, *, axis=-1, descending=False, stable=True": "argsort sort",
    "x, /, *, axis=-1, n=1, prepend=None, append=None": "diff",
    "x, /, *, axis=0": "unstack",
    "x, /, *, axis=None": "flip",
    "x, /, *, axis=None, correction=0.0, keepdims=False": "std var",
    "x, /, *, axis=None, dtype=None, include_initial=False": "cumulative_prod cumulative_sum",
    "x, /, *, axis=None, dtype=None, keepdims=False": "prod sum",
    "x, /, *, axis=None, keepdims=False": "all any argmax argmin count_nonzero max mean min",
    "x, /, *, axis=None, keepdims=False, ord=2": "linalg.vector_norm",
    "x, /, *, device=None, copy=None": "from_dlpack",
    "x, /, *, dtype=None, device=None": "empty_like ones_like zeros_like",
    "x, /, *, full_matrices=True": "linalg.svd",
    "x, /, *, k=0": "tril triu",
    "x, /, *, keepdims=False, ord='fro'": "linalg.matrix_norm",
    "x, /, *, mode='reduced'": "linalg.qr",
    "x, /, *, n=None, axis=-1, norm='backward'": "fft.fft fft.hfft fft.ifft fft.ihfft fft.irfft fft.rfft",
    "x, /, *, offset=0": "linalg.diagonal",
    "x, /, *, offset=0, dtype=None": "linalg.trace",
    "x, /, *, rtol=None": "linalg.matrix_rank linalg.pinv",
    "x, /, *, s=None, axes=None, norm='backward'": "fft.fftn fft.ifftn fft.irfftn fft.rfftn",
    "x, /, *, upper=False": "linalg.cholesky",
    "x, /, axes": "permute_dims",
    "x, /, axis": "expand_dims squeeze",
    "x, /, fill_value, *, dtype=None, device=None": "full_like",
    "x, /, min=None, max=None": "clip",
    "x, /, shape": "broadcast_to",
    "x, /, shape, *, copy=None": "reshape",
    "x, /, shift, *, axis=None": "roll",
    "x, dtype, /, *, copy=True, device=None": "astype",
    "x, indices, /, *, axis=-1": "take_along_axis",
    "x, indices, /, *, axis=None": "take",
    "x, n, /": "linalg.matrix_power",
    "x, repeats, /, *, axis=None": "repeat",
    "x, repetitions, /": "tile",
    "x, source, destination, /": "moveaxis",
    "x1, x2, /, *, axes=2": "linalg.tensordot tensordot",
    "x1, x2, /, *, axis=-1": "linalg.cross linalg.vecdot vecdot",
    "x1, x2, /, *, invert=False": "isin",
    "x1, x2, /, *, side='left', sorter=None": "searchsorted",
}
METHODS = {
    "": "__abs__ __bool__ __complex__ __dlpack_device__ __float__ __index__ __int__ __invert__ __neg__ __pos__",
    "other, /": "__add__ __and__ __eq__ __floordiv__ __ge__ __gt__ __le__ __lshift__ __lt__ __matmul__ __mod__ __mul__"
    " __ne__ __or__ __pow__ __rshift__ __sub__ __truediv__ __xor__",
    "*, api_version=None": "__array_namespace__",
    "*, stream=None, max_version=None, dl_device=None, copy=None": "__dlpack__",
    "key, /": "__getitem__",
    "key, value, /": "__setitem__",
    "device, /, *, stream=None": "to_device",
}
PROPERTIES = "dtype device mT ndim shape size T".split()
CONSTANTS = {"e": np.e, "inf": np.inf, "newaxis": None, "pi": np.pi}
DTYPES = ("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128").split()


def at(path: str) -> object:
    found = xp
    for name in path.split("."):
        found = getattr(found, name)
    return found


STANDARD = {name: text for text, names in SIGNATURES.items() for name in names.split()}
BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
BY_NAME = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def check_takes(function: object, text: str) -> None:
    """The function takes all calls that this signature allows."""
    wanted = ast.parse(f"def f({text}): ...").body[0].args
    found = [each for each in inspect.signature(function).parameters.values() if each.name != "self"]
    defaults = dict(
        zip([each.arg for each in (*wanted.posonlyargs, *wanted.args)][::-1], wanted.defaults[::-1], strict=False)
    )
    defaults |= {each.arg: default for each, default in zip(wanted.kwonlyargs, wanted.kw_defaults, strict=True)}
    first = len(wanted.posonlyargs)
    for place, each in enumerate((*wanted.posonlyargs, *wanted.args)):
        assert found[place].kind in BY_POSITION, each.arg
        assert place < first or found[place].name == each.arg, each.arg
        assert place < first or found[place].kind in BY_NAME, each.arg
    named = {each.name: each for each in found}
    for each in wanted.kwonlyargs:
        assert named[each.arg].kind in BY_NAME, each.arg
    assert (wanted.vararg is not None) == any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in found)
    for name, default in defaults.items():
        assert name not in named or default is None or named[name].default == ast.literal_eval(default), name


@pytest.mark.parametrize("name", STANDARD)
def test_a_function_takes_what_the_standard_says(name):
    check_takes(at(name), STANDARD[name])


def test_arrays_have_the_methods_of_the_standard():
    for text, names in METHODS.items():
        for name in names.split():
            check_takes(getattr(xp.Array, name), text)
    for name in (*PROPERTIES, "real", "imag"):
        assert isinstance(getattr(xp.Array, name), property)


def test_all_names_and_dir_name_all_that_there_is():
    assert {name for name in STANDARD if "." not in name} | CONSTANTS.keys() | {*DTYPES} <= {*xp.__all__}
    for module, prefix in ((xp.linalg, "linalg."), (xp.fft, "fft.")):
        assert {name.removeprefix(prefix) for name in STANDARD if name.startswith(prefix)} == {*module.__all__}
    for module in (xp, xp.linalg, xp.fft, xp.extra):
        assert len(module.__all__) == len({*module.__all__})
        assert all(hasattr(module, name) for name in module.__all__)
    assert all(hasattr(xp, name) for name in dir(xp))
    assert {*xp.__all__} <= {*dir(xp)}
    assert "median" in dir(xp)


def test_constants_and_dtypes_are_numpys():
    assert all(getattr(xp, name) is value or getattr(xp, name) == value for name, value in CONSTANTS.items())
    assert np.isnan(xp.nan)
    assert all(getattr(xp, name) == np.dtype(name) and isinstance(getattr(xp, name), np.dtype) for name in DTYPES)


def functions():
    for module in (xp, xp.linalg, xp.fft, xp.extra):
        for name in module.__all__:
            found = getattr(module, name)
            if callable(found) and not isinstance(found, type | np.dtype):
                yield f"{module.__name__}.{name}", found
    info = xp.__array_namespace_info__()
    yield from ((name, getattr(info, name)) for name in dir(info) if name[0] != "_")


def test_each_function_is_explained_by_an_example_that_runs():
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    told, without = [], []
    with warnings.catch_warnings():
        for name, function in functions():
            doc = inspect.getdoc(function) or ""
            if not doc.partition("\n")[0].rstrip().endswith(".") or ">>> " not in doc:
                without.append(name)
            names = {"xp": xp, "np": np, "fusec": fusec}
            runner.run(parser.get_doctest(doc, names, name, None, 0), out=told.append)
    assert not without
    assert not told, "\n".join(told)
    assert runner.tries > 250


def test_functions_have_their_own_name():
    wrong = [name for name, function in functions() if function.__name__ != name.rpartition(".")[2]]
    assert not wrong


@pytest.mark.parametrize(
    ("module", "name", "meant"),
    [(xp, "meam", "mean"), (xp, "medain", "median"), (xp.linalg, "cholesk", "cholesky"), (xp.fft, "rff2", "rfft2"),
     (xp.extra, "sofmax", "softmax")],
)  # fmt: skip
def test_a_misspelt_name_is_an_error_that_names_the_nearest_one(module, name, meant):
    with pytest.raises(fusec.FusecAttributeError, match=f"has no attribute '{name}'") as caught:
        getattr(module, name)
    assert caught.value.hint == f"did you mean '{meant}'?"
    assert module.__name__ in str(caught.value)


@pytest.mark.parametrize("name", ["nosuch", "_private", "memmap", "busday_count", "__wrapped__"])
def test_a_name_that_no_table_has_is_refused(name):
    assert not hasattr(xp, name)


def test_unknown_devices_are_refused_by_name():
    for call in (lambda: xp.zeros(3, device="cpu:7"), lambda: xp.asarray([1], device=0),
                 lambda: xp.__array_namespace_info__().dtypes(device="tpu"),
                 lambda: xp.fft.fftfreq(3, device="tpu")):  # fmt: skip
        with pytest.raises(fusec.FusecValueError, match="there is no device") as caught:
            call()
        assert "'cpu'" in caught.value.hint


def test_importing_the_namespace_imports_neither_compiler_nor_tracers():
    program = "import sys, fusec.xp; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = run.stdout.split()
    assert {each.split(".")[0] for each in loaded}.isdisjoint({"llvmlite", "lark", "ml_dtypes", "scipy"})
    folders = {".".join(each.split(".")[:2]) for each in loaded if each.startswith("fusec.")}
    assert folders == {"fusec.base", "fusec.environment", "fusec.errors", "fusec.version", "fusec.xp"}
    assert not {"fusec.xp.extra", "fusec.xp.tracing", "fusec.errors.fusing"} & set(loaded)


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes_stand_for_numpys_and_are_called_as_its_scalar_types(name):
    ours, theirs = getattr(xp, name), np.dtype(name)
    assert (ours == theirs, theirs == ours, ours == ours.dtype.type, hash(ours)) == (True, True, True, hash(theirs))
    assert xp.zeros(3, dtype=ours).dtype == ours != np.dtype("S1")
    assert [None] != [ours] != [None]  # only NumPy's float64 equals None
    assert pickle.loads(pickle.dumps(ours)) is copy.deepcopy(ours) is ours
    assert (repr(ours), str(ours), ours.kind, ours.itemsize) == (repr(theirs), name, theirs.kind, theirs.itemsize)
    assert np.zeros(2, ours).dtype is np.dtype(ours) is theirs
    number = ours(1)
    assert (type(number), number, ours()) == (theirs.type, 1, 0)
    lazy, listed = ours(xp.asarray([0, 1])), ours([0, 1])
    assert type(lazy) is type(listed) is xp.Array
    assert lazy.dtype == listed.dtype == theirs
    assert lazy.tolist() == listed.tolist() == [0, 1]


def test_dtypes_are_ordered_as_numpys():
    assert sorted([xp.float64, xp.int8, xp.float32]) == [np.int8, np.float32, np.float64]
    assert np.dtype("int16") < xp.int32 < np.dtype("int64")
    assert xp.float32 <= xp.float64 >= xp.float32
    assert xp.int8 >= np.dtype("int8") <= xp.int8
    with pytest.raises(TypeError):
        xp.int8.__class__ = int


@pytest.mark.parametrize("record", [xp.sum, xp.exp, lambda x: xp.zeros(2) + x, lambda x: xp.concat([xp.zeros(2), x])])
def test_arrays_of_objects_are_refused_where_they_are_used(record):
    with pytest.raises(fusec.FusecError, match="objects cannot be computed on") as raised:
        record(np.array([1, None]))
    assert raised.value.code == "F775"


@pytest.mark.parametrize(
    "function",
    [copy.copy, copy.deepcopy, np.copy, lambda x: np.sum([x, x], axis=0), lambda x: np.stack([x, x]), lambda x: x * 2],
)
def test_new_arrays_are_in_numpys_order_in_memory(function):
    for begin in (lambda x: x, lambda x: x * 1, lambda x: x[1:] * 1, lambda x: x.T):
        for values in (
            np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1),
            np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        ):  # fmt: skip
            expected = function(begin(values))
            found = np.asarray(function(begin(xp.asarray(values))))
            extended = [extent > 1 for extent in expected.shape]
            assert found.shape == expected.shape
            assert np.compress(extended, found.strides).tolist() == np.compress(extended, expected.strides).tolist()
