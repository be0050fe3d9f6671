"""Programs written for NumPy run with fusec.xp in its place: names, options, writes and views."""

import warnings

import numpy as np
import pytest

import fusec.xp as xp
from fusec.xp.numpy_names import RENAMED

RESULTS = """
m.hstack([x, x])
m.median(x, axis=0)
m.pad(x, 1)
m.outer(v, v)
m.roll(x, 1, 0)
m.linalg.norm(x, axis=1)
m.sum(x, 0)
m.sum(x, where=x > 0)
m.max(x, initial=0, where=x > 0)
m.std(x, axis=0, ddof=1)
m.add.reduce(x, axis=0)
m.maximum.accumulate(x, axis=1)
m.subtract.outer(v, v)
m.multiply.reduceat(v, [0, 2])
m.unique(v, return_counts=True)
m.flatnonzero(x > 0)
m.where(x > 0)
m.bincount(v)
m.histogram(v, bins=3)
m.concatenate([x, x], axis=1)
m.concatenate([v, [1, 2]])
m.array_split(v, 3)
m.transpose(x, (1, 0))
m.rot90(x)
m.cross(v[:3], v[1:])
m.einsum('ij,kj->ik', x, x)
m.interp([1.5], v, v)
m.gradient(v.astype(float))
m.cumsum(x)
m.quantile(x, [0.1, 0.5], axis=1)
m.round(x, 1)
m.sort(x, axis=None)
m.argsort(v, kind='stable')
m.shape(x)
m.ndim(x)
m.result_type(x, v)
m.iscomplexobj(x)
m.allclose(x, x)
m.eye(3, 4, 1)
m.linspace(0, 1, 5, retstep=True)
m.zeros((2, 3), 'int8')
m.array([v, v])
m.array([[1, 2], [3, 4]], float, ndmin=3)
m.hanning(5)
x[m.ix_([0, 1], [2, 3])]
m.take(x, [0, 1], 1)
m.extract(x > 0, x)
m.compress([True, False, True], x, axis=0)
m.repeat(v, [1, 2, 0, 1])
m.delete(v, 1)
m.intersect1d(v, [1, 2])
m.modf(x)
m.divmod(v, 2)
m.exp2(x)
m.fmax(x, 0)
m.isclose(x, x)
m.polyfit(v, v, 1)
m.fft.fft2(x)
m.fft.fft(x, 8)
m.linalg.lstsq(s, [1.0, 2.0], rcond=None)[0]
m.linalg.multi_dot([s, s, s])
m.select([x > 0, x < -2], [x, 1], 9)
m.average(x, weights=x * x, axis=0)
m.lexsort((v, v))
m.apply_along_axis(lambda q: q.sum(), 0, x)
m.lib.stride_tricks.sliding_window_view(v, 2)
m.sum([1, 2, 3])
m.sin(1.0)
m.add(1, 2)
m.reshape(x, (4, 3), order='F')
m.real_if_close(x)
m.require(x)
""".strip().splitlines()
WRITES = """
m.clip(x, 0, 3, out=x)
m.add(x, 1, out=x)
m.sum(x, axis=0, out=x[0])
m.add(x, x, where=x > 0, out=x)
m.divmod(x, 2, x, m.zeros((3, 4)))
m.add.at(v, [0, 0], 1)
m.copyto(x, 5, where=x > 0)
m.fill_diagonal(x, 9)
m.put(x, [0, 1], 9)
m.putmask(x, x > 0, 9)
m.put_along_axis(x, m.argmax(x, axis=1, keepdims=True), 9, 1)
m.fliplr(x)[0] = 7
m.transpose(x)[0] = 7
m.swapaxes(x, 0, 1)[1] = 7
m.ravel(x)[0] = 7
m.split(v, 2)[0][:] = 7
m.unstack(x)[1][:] = 7
m.squeeze(x[None])[0] = 7
""".strip().splitlines()
ERRORS = """
m.sum(x, axis=7)
m.sum(x, foo=1)
m.concatenate([x, v])
m.reshape(x, (5,))
m.add(x, m.zeros(5))
m.add(x, 1, out=3)
m.linalg.solve(m.ones(3), m.ones(3))
m.stack([x, v])
m.copyto(3, 5)
m.broadcast_to(x, (3, 5))
m.take(x, [7], 1)
m.matmul(x, x)
""".strip().splitlines()


def ran(text, module, convert):
    """What a line gives, and the arrays that it may have changed."""
    names = {"x": np.arange(12.0).reshape(3, 4) - 4.5, "v": np.array([3, 1, 2, 5]), "s": np.array([[4.0, 1], [1, 3]])}
    arrays = {name: convert(value) for name, value in names.items()}
    space = {"m": module, **arrays}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if " = " in text.partition("(")[0] or text.endswith("= 7"):
            exec(text, space)
            found = None
        else:
            found = eval(text, space)
    return found, arrays


CONVERSIONS = {"evaluated": xp.asarray, "pending": lambda value: xp.asarray(value) + 0, "numpy": np.copy}


def assert_same(ours, theirs):
    if isinstance(theirs, (tuple, list)):
        assert type(ours) in (tuple, list)
        for our, their in zip(ours, theirs, strict=True):
            assert_same(our, their)
    elif isinstance(theirs, (np.ndarray, np.generic)):
        assert isinstance(ours, xp.Array)
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-13, atol=1e-13)
    else:
        assert ours == theirs


@pytest.mark.parametrize("conversion", ["evaluated", "pending"])
@pytest.mark.parametrize("text", RESULTS)
@pytest.mark.sampled(5)
def test_a_line_gives_what_numpy_gives(text, conversion):
    assert_same(ran(text, xp, CONVERSIONS[conversion])[0], ran(text, np, np.copy)[0])


@pytest.mark.parametrize("conversion", ["evaluated", "pending"])
@pytest.mark.parametrize("text", WRITES)
def test_a_line_changes_what_numpy_changes(text, conversion):
    _, ours = ran(text, xp, CONVERSIONS[conversion])
    for name, theirs in ran(text, np, np.copy)[1].items():
        assert_same(ours[name], theirs)


@pytest.mark.parametrize("text", ERRORS)
def test_a_mistake_is_the_error_that_numpy_makes_of_it(text):
    with pytest.raises((TypeError, ValueError, IndexError, np.linalg.LinAlgError)) as wanted:
        ran(text, np, np.copy)
    for conversion in ("evaluated", "pending"):
        with pytest.raises(wanted.type):
            np.asarray(ran(text, xp, CONVERSIONS[conversion])[0])


def test_functions_take_numpys_arrays_and_lists_too():
    x = np.arange(4.0)
    for found in (xp.sum(x), xp.median(x), xp.concat([x, [1.0]]), xp.hstack([x, xp.asarray(x)]), xp.linalg.norm(x)):
        assert isinstance(found, xp.Array)


def test_ufuncs_tell_what_numpys_tell():
    for name in ("add", "multiply", "exp", "isnan", "fmax", "modf"):
        ours, theirs = getattr(xp, name), getattr(np, name)
        assert (ours.nin, ours.nout, ours.identity) == (theirs.nin, theirs.nout, theirs.identity)
        assert ours.__name__ == theirs.__name__


@pytest.mark.parametrize(("name", "meant"), sorted(RENAMED.items()))
def test_other_names_of_what_there_is_name_it(name, meant):
    assert hasattr(xp, meant)
    with pytest.raises(AttributeError, match="F772") as missing:
        getattr(xp, name)
    assert missing.value.hint == f"write fusec.xp.{meant}"


@pytest.mark.parametrize("name", ["issubdtype", "load", "fromfile", "shares_memory"])
def test_functions_that_only_numpy_has_are_named_with_what_converts_arrays(name):
    with pytest.raises(AttributeError, match="F772") as missing:
        getattr(xp, name)
    assert missing.value.hint.startswith(f"call numpy.{name}: where it takes arrays, pass np.asarray(x)")


def test_strides_name_the_functions_that_make_views():
    with pytest.raises(AttributeError, match="F772") as missing:
        _ = xp.lib.stride_tricks.as_strided
    assert "sliding_window_view" in missing.value.hint


def test_numpys_own_options_have_their_meaning():
    x = np.random.default_rng(0).normal(size=(4, 3))
    lazy = xp.asarray(x)
    np.testing.assert_array_equal(xp.linalg.qr(lazy, mode="r"), np.linalg.qr(x, mode="r"))
    np.testing.assert_array_equal(xp.linalg.svd(lazy, compute_uv=False), np.linalg.svd(x, compute_uv=False))
    np.testing.assert_array_equal(xp.clip(lazy, a_min=-0.5, a_max=0.5), np.clip(x, -0.5, 0.5))
    np.testing.assert_array_equal(xp.clip(lazy, a_max=0.5), np.clip(x, None, 0.5))
    np.testing.assert_array_equal(xp.clip(lazy, a_min=None, max=0.5), np.clip(x, None, 0.5))
    with pytest.raises(TypeError, match="got min and a_min, which are the same bound"):
        xp.clip(lazy, 0, a_min=1)
