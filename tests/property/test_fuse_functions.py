"""NumPy's functions give the same results in fused functions, over dtypes, shapes and layouts; so are the errors."""

import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest

import fusec
from tests.support.interpreted import interpreted

DTYPES = ("float64", "int32", "bool", "float32", "uint8", "complex64")
BINS = np.array([-1.0, 0.0, 0.5, 2.0])
LAYOUTS = {
    "no axes": lambda x: x[:1].reshape(()),
    "row": lambda x: x[:6],
    "empty": lambda x: x[:0].reshape(0, 3),
    "strided": lambda x: x.reshape(6, 4)[::2, ::-1],
    "transposed": lambda x: x.reshape(2, 3, 4).T,
}

ROWS: dict[str, Any] = {
    "allclose": lambda x, y: (np.allclose(x, y), np.allclose(x, x, equal_nan=True)),
    "append": lambda x, y: (np.append(x, y), np.append(x, y, axis=0), np.append(x, 3)),
    "apply_over_axes": lambda x, y: np.apply_over_axes(np.max, x, [0, -1]),
    "array": lambda x, y: (np.array(x), np.array(x, "float64", ndmin=3), np.array([x, y]), np.array([[x.max(), 1.5]])),
    "array_equal": lambda x, y: (np.array_equal(x, y), np.array_equal(x, x), np.array_equal(x, x, equal_nan=True)),
    "array_equiv": lambda x, y: (np.array_equiv(x, x[:1]), np.array_equiv(x, [1, 2])),
    "array_split": lambda x, y: (np.array_split(x, 4), np.array_split(x, [1, 2], axis=-1)),
    "asarray": lambda x, y: (np.asarray(x), np.asarray(x, "float64"), np.asanyarray(x.max()), np.asfortranarray(x)),
    "ascontiguousarray": lambda x, y: (np.ascontiguousarray(x), np.ascontiguousarray(x, "complex64")),
    "average": lambda x, y: (np.average(x), np.average(x, 0, weights=x + 9), np.average(x, returned=True)),
    "average of a row": lambda x, y: np.average(x, axis=-1, weights=np.arange(1, x.shape[-1] + 1)),
    "block": lambda x, y: (np.block([x, y]), np.block([[x, y], [y, x]])),
    "broadcast_arrays": lambda x, y: np.broadcast_arrays(x, y[:1]),
    "choose": lambda x, y: (
        np.choose(x > y, [x, 3]),
        np.choose(x, [y, x, 7], mode="wrap"),
        x.choose([y, 2], mode="clip"),
    ),
    "column_stack": lambda x, y: np.column_stack([x, y]),
    "common_type": lambda x, y: np.zeros(2, np.common_type(x, y)),
    "compress": lambda x, y: (
        np.compress([True, False], x),
        x.compress([0, 1], axis=-1),
        np.compress(x.ravel()[: len(x)] > 0, x, 0).sum(),
    ),
    "convolve": lambda x, y: (np.convolve(x, y[:3]), np.convolve(x[:2], y, "same"), np.convolve(x, [1, 2], "valid")),
    "copyto": lambda x, y: (np.copyto(x, y, where=x > y), x + 0),
    "correlate": lambda x, y: (np.correlate(x, y[:3]), np.correlate(x[:2], y, "same"), np.correlate(x, y, "full")),
    "cross": lambda x, y: np.cross(x[..., :3], y[..., :3]),
    "delete": lambda x, y: (np.delete(x, 1), np.delete(x, [0, -1], axis=0), np.delete(x, slice(1, 3), axis=-1)),
    "diag": lambda x, y: (np.diag(x), np.diag(x, 1), np.diag(x, -1)),
    "diagflat": lambda x, y: (np.diagflat(x), np.diagflat(x, -2)),
    "diff": lambda x, y: (np.diff(x), np.diff(x, 2, axis=0), np.diff(x, prepend=0), np.diff(x, append=y[..., :1])),
    "digitize": lambda x, y: (np.digitize(x, BINS), np.digitize(x, BINS[::-1], right=True)),
    "ediff1d": lambda x, y: (np.ediff1d(x), np.ediff1d(x, to_begin=y.ravel()[:2], to_end=x.max())),
    "expand_dims": lambda x, y: (np.expand_dims(x, 0), np.expand_dims(x, (0, -1))),
    "fill_diagonal": lambda x, y: (np.fill_diagonal(x, 5), x + 0),
    "fill_diagonal of a row": lambda x, y: (np.fill_diagonal(x, y[0, :2]), x + 0),
    "flat": lambda x, y: (x.copy().flat[1:4], np.ravel(x)[::2]),
    "flip": lambda x, y: (np.flip(x), np.flip(x, 0), np.flipud(x), np.fliplr(x)),
    "full": lambda x, y: (
        np.full((2, 3), x.max()),
        np.full(x.shape, x),
        np.ones(2) * x.max(),
        np.full_like(x, 1, "f4"),
    ),
    "gradient": lambda x, y: (np.gradient(x), np.gradient(x, 2.0, axis=0), np.gradient(x, edge_order=2)),
    "gradient of places": lambda x, y: np.gradient(x, np.arange(x.shape[0]) ** 2, axis=0),
    "hstack": lambda x, y: (np.hstack([x, y]), np.vstack([x, y]), np.dstack([x, y])),
    "insert": lambda x, y: (np.insert(x, 1, 5), np.insert(x, 0, y[:1], axis=0), np.insert(x, [0, 2], 7, axis=-1)),
    "insert several": lambda x, y: (np.insert(x, [1, 1], y.ravel()[:2]), np.insert(x, 1, [3, 4])),
    "isclose": lambda x, y: (np.isclose(x, y), np.isclose(x, x, equal_nan=True), np.isclose(x, 1)),
    "iscomplex": lambda x, y: (np.iscomplex(x), np.isreal(x)),
    "isin": lambda x, y: (np.isin(x, [0, 1]), np.isin(x, y, invert=True), np.isin(x, 0.5)),
    "isposinf": lambda x, y: (np.isposinf(x), np.isneginf(x)),
    "kron": lambda x, y: (np.kron(x, y[:2]), np.kron(x, [1, 2])),
    "linspace": lambda x, y: (
        np.linspace(x, y, 4),
        np.linspace(0, x, 3, endpoint=False, axis=-1),
        np.linspace(x, 1, 2, retstep=True),
    ),
    "logspace": lambda x, y: np.logspace(x, y, 3),
    "meshgrid": lambda x, y: (np.meshgrid(x, y[:2]), np.meshgrid(x, y, indexing="ij", sparse=True)),
    "moveaxis": lambda x, y: (np.moveaxis(x, 0, -1), np.rollaxis(x, -1), np.swapaxes(x, 0, -1)),
    "nan_to_num": lambda x, y: (np.nan_to_num(x), np.nan_to_num(x, nan=1, posinf=2, neginf=3)),
    "nanargmax": lambda x, y: (np.nanargmax(x, axis=0), np.nanargmin(x)),
    "nancumsum": lambda x, y: (np.nancumsum(x), np.nancumsum(x, axis=0), np.nancumprod(x, axis=-1)),
    "nanstd": lambda x, y: (np.nanstd(x), np.nanstd(x, x.ndim - 1 if x.ndim else None, ddof=1, keepdims=True)),
    "nanvar": lambda x, y: (
        np.nanvar(x),
        np.nanvar(x, axis=0 if x.ndim else None, correction=2),
        np.nanvar(x, where=x != 0),
    ),
    "outer": lambda x, y: (np.outer(x, y), np.add.outer(x, y)),
    "packbits": lambda x, y: (np.packbits(x), np.packbits(x, axis=0), np.packbits(x, bitorder="little")),
    "pad": lambda x, y: (
        np.pad(x, 2),
        np.pad(x, 1, constant_values=3),
        np.pad(x, 1, "edge"),
        np.pad(x, (1, 2), "wrap"),
    ),
    "pad by mirrors": lambda x, y: (np.pad(x, 2, "reflect"), np.pad(x, 1, "symmetric"), np.pad(x, 1, "maximum")),
    "piecewise": lambda x, y: np.piecewise(x, [x < y, x > 1], [3, 4, 5]),
    "place": lambda x, y: (np.place(x, x > y, [1]), x + 0),
    "polyadd": lambda x, y: (np.polyadd(x, y[:2]), np.polysub(x, y)),
    "polyder": lambda x, y: np.polyder(x),
    "polyint": lambda x, y: np.polyint(x),
    "polyval": lambda x, y: (np.polyval([2, 1, 3], x), np.polyval(x, y)),
    "putmask": lambda x, y: (np.putmask(x, x > y, [1, 2]), x + 0),
    "ravel": lambda x, y: (
        x.ravel("F"),
        x.flatten("F"),
        x.reshape(-1, order="F"),
        x.ravel("K"),
        np.reshape(x, -1, "A"),
    ),
    "reduce of bits": lambda x, y: (np.bitwise_or.reduce(x), np.bitwise_xor.reduce(x, axis=-1, keepdims=True)),
    "reduce of truth": lambda x, y: (np.logical_xor.reduce(x, axis=None), np.bitwise_and.reduce(x, where=x > 0)),
    "repeat": lambda x, y: (np.repeat(x, 2), np.repeat(x, 2, axis=0), x.repeat([1, 0, 2], axis=0), np.repeat(x, 0)),
    "resize": lambda x, y: (np.resize(x, (2, 5)), np.resize(x, 3), np.resize(x, 0)),
    "round": lambda x, y: (np.round(x, -1), x.round(1)),
    "searchsorted": lambda x, y: (
        np.searchsorted(BINS, x),
        np.searchsorted([0, 2], x, "right"),
        np.searchsorted(np.zeros_like(x), 1),
    ),
    "select": lambda x, y: (np.select([x > y, x < y], [x, y], 3), np.select([x == y], [x])),
    "split": lambda x, y: (np.split(x, [2]), np.hsplit(x, [1]), np.vsplit(x, [1]), np.dsplit(x, [1])),
    "squeeze": lambda x, y: (np.squeeze(x[:1]), np.atleast_2d(x), np.atleast_3d(x)),
    "tile": lambda x, y: (np.tile(x, 2), np.tile(x, (2, 1, 2)), np.tile(x, 0)),
    "trace": lambda x, y: (np.trace(x), x.trace(1), np.trace(x, dtype="float64")),
    "trapezoid": lambda x, y: (np.trapezoid(x), np.trapezoid(x, dx=0.5, axis=0), np.trapezoid(x, y)),
    "tril": lambda x, y: (np.tril(x), np.tril(x, -1), np.triu(x), np.triu(x, 1)),
    "unpackbits": lambda x, y: (
        np.unpackbits(x),
        np.unpackbits(x, axis=0, count=5 if x.size else None),
        np.unpackbits(x, bitorder="little"),
    ),
    "unstack": lambda x, y: (np.unstack(x), np.unstack(x, axis=-1)),
    "triu_indices_from": lambda x, y: (np.triu_indices_from(x), np.tril_indices_from(x, 1), np.diag_indices_from(x)),
    "unravel_index": lambda x, y: (np.unravel_index(x, (3, 4)), np.ravel_multi_index((x, y), (5, 5), mode="clip")),
    "unwrap": lambda x, y: (np.unwrap(x), np.unwrap(x * 4, axis=0)),
    "vander": lambda x, y: (np.vander(x), np.vander(x, 2, increasing=True)),
    "zeros": lambda x, y: _filled(x, y),
}
ROUGH = frozenset(
    "average average of a row linspace logspace nanstd nanvar trapezoid gradient gradient of places".split()
)


def _filled(x, y):
    found = np.zeros((3, *x.shape), x.dtype)
    found[0], found[1], ones = x, y + y, np.ones(x.shape, int)
    ones[...] = 2 if np.zeros(2).sum else 3
    return found, ones, np.empty((2, 0)), np.identity(2)


def _given(dtype: str, layout: str, seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    drawn = (rng.integers(-3 if np.dtype(dtype).kind in "if" else 0, 4, 24) for _ in range(2))
    return [LAYOUTS[layout]((each / (2 if np.dtype(dtype).kind in "fc" else 1)).astype(dtype)) for each in drawn]


def _result(function: Any, given: list[Any]) -> Any:
    try:
        return function(*given), given
    except Exception as error:  # whatever NumPy raises
        return error


def _assert_same(ours: Any, theirs: Any, is_rough: bool) -> None:
    if isinstance(theirs, Exception):
        assert isinstance(ours, Exception)
        assert not isinstance(ours, fusec.FusecError) or ours.code != "F280"
    elif isinstance(theirs, (list, tuple)):
        assert not isinstance(ours, Exception), ours
        assert len(ours) == len(theirs)
        for our, their in zip(ours, theirs, strict=True):
            _assert_same(our, their, is_rough)
    elif isinstance(theirs, (np.ndarray, np.generic)):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        assert isinstance(ours, np.ndarray) == isinstance(theirs, np.ndarray)
        if is_rough:
            np.testing.assert_allclose(ours, theirs, rtol=1e-5 if theirs.dtype in ("f4", "c8") else 1e-12, atol=1e-7)
        else:
            np.testing.assert_array_equal(ours, theirs)
    else:
        assert ours == theirs


def check(name: str, dtype: str, layout: str) -> None:
    """A row on new arrays, fused and not, twice, and on shorter ones."""
    fused, row = fusec.fuse(ROWS[name]), ROWS[name]
    for seed, stop in ((1, None), (2, None), (3, -1)):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            theirs, ours = (
                _result(each, [x[:stop] if x.ndim else x for x in _given(dtype, layout, seed)]) for each in (row, fused)
            )
        _assert_same(ours, theirs, name in ROUGH or dtype == "complex64")


PAIRS = list(product(DTYPES, LAYOUTS))


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.sampled(5)
def test_a_function_is_numpys(name):
    number = list(ROWS).index(name)
    compiled, *others = [PAIRS[(number * 11 + at * 7) % len(PAIRS)] for at in range(3)]
    check(name, *compiled)
    with interpreted():
        for pair in others:
            check(name, *pair)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ROWS)
def test_a_function_is_numpys_for_all_dtypes_and_layouts(name, dtype):
    for layout in LAYOUTS:
        check(name, dtype, layout)
