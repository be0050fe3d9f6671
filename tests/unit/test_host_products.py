"""Products in host memory by NumPy's BLAS: NumPy's values, one result for any number of threads, and no thread lost."""

import gc
import itertools
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fusec
import fusec.xp as xp
from fusec.base.matrices import Matrix, ProductSizes
from fusec.fusion.fused_plan import FusedPlan
from fusec.runtime.cpu import blas, jit, products
from fusec.runtime.cpu.product_text import hold_text, product_text

needs_blas = pytest.mark.skipif(blas.library() is None, reason="NumPy's BLAS is not OpenBLAS")
DTYPES = ("float32", "float64", "complex64", "complex128")
SHAPES = (
    ((5, 7), (7, 3)), ((130, 70), (70, 129)), ((64, 1), (1, 64)), ((1, 50), (50, 9)), ((9, 50), (50, 1)),
    ((50,), (50, 9)), ((9, 50), (50,)), ((700, 300), (300,)), ((300,), (300, 700)), ((4, 5, 6), (4, 6, 7)),
    ((4, 5, 6), (6, 7)), ((1, 5, 6), (4, 6, 7)), ((2, 3, 20, 30), (2, 3, 30, 10)), ((3, 50, 60), (60,)),
    ((60,), (3, 60, 50)), ((0, 3), (3, 4)), ((3, 0), (0, 4)),
)  # fmt: skip


def laid(values, how):
    """The same values in another layout."""
    if how == "columns":
        return np.asfortranarray(values)
    if how == "wider" and values.ndim > 1:
        room = np.zeros((*values.shape[:-1], values.shape[-1] + 5), values.dtype)
        room[..., : values.shape[-1]] = values
        return room[..., : values.shape[-1]]
    if how == "spread":
        return np.repeat(values, 3, -1)[..., ::3]
    if how == "backwards":
        return values[::-1].copy()[::-1]
    return values


def normal(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    return (values + 1j * rng.standard_normal(shape) if dtype[0] == "c" else values).astype(dtype)


def check(found, a, b):
    wanted = a @ b
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    scale = np.abs(a) @ np.abs(b) * np.finfo(a.dtype).eps * (8 + np.sqrt(a.shape[-1]))
    assert (np.abs(found - wanted) <= scale).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("left", "right"), SHAPES)
@pytest.mark.sampled(5)
def test_all_layouts(left, right, dtype):
    fused = fusec.fuse(lambda a, b: a @ b)
    for one, other in itertools.product(("rows", "columns", "wider", "spread", "backwards"), repeat=2):
        a, b = laid(normal(left, dtype), one), laid(normal(right, dtype, 1), other)
        check(fused(a, b), a, b)


SIZES = st.integers(1, 70)


@given(SIZES, SIZES, SIZES, st.sampled_from(DTYPES), st.booleans(), st.booleans(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_all_sizes(rows, inner, columns, dtype, turn_a, turn_b, adds):
    a = normal((inner, rows), dtype).T if turn_a else normal((rows, inner), dtype)
    b = normal((columns, inner), dtype, 1).T if turn_b else normal((inner, columns), dtype, 1)
    fused = fusec.fuse(lambda a, b: (a @ b) + 0 if adds else np.tensordot(a, b, 1))
    check(fused(a, b), a, b)


@needs_blas
def test_a_call_has_the_bits_of_the_first_one():
    def program(a, b, c):
        return np.maximum(a @ b, 0) @ c + a[:, :1]

    for size in (5, 64, 200):
        a, b, c = (normal((size, size), "float32", seed) for seed in range(3))
        fused = fusec.fuse(program)
        first = fused(a, b, c)
        for _ in range(20):
            assert fused(a, b, c).tobytes() == first.tobytes()
        x = xp.maximum(xp.asarray(a) @ xp.asarray(b), 0) @ xp.asarray(c) + xp.asarray(a)[:, :1]
        assert np.asarray(x).tobytes() == first.tobytes()


@needs_blas
def test_all_steps_of_a_perceptron_are_one_entry():
    fused = fusec.fuse(lambda x, v, w: np.maximum(x @ v, 0) @ w)
    given = [normal(shape, "float64") for shape in ((3, 4), (4, 5), (5, 6))]
    for _ in range(12):
        found = fused(*given)
    np.testing.assert_allclose(found, np.maximum(given[0] @ given[1], 0) @ given[2])
    plans = [each for each in gc.get_objects() if isinstance(each, FusedPlan) and each.calls and len(each.steps) == 3]
    assert any(plan.entry is not None and len(plan.native) == 1 for plan in plans)


THREADS = """
import hashlib, numpy as np, fusec
rng = np.random.default_rng(0)
digest = hashlib.sha256()
for shape in ((257, 300, 129), (1000, 64, 128), (700, 900, 1), (40, 5000, 40)):
    for dtype in ("float32", "float64", "complex64"):
        a, b = (rng.standard_normal(each).astype(dtype) for each in (shape[:2], shape[1:]))
        fused = fusec.fuse(lambda a, b: a @ b)
        for _ in range(3):
            digest.update(fused(a, b).tobytes())
print(digest.hexdigest())
"""


@needs_blas
def test_bits_do_not_depend_on_the_number_of_threads():
    found = set()
    for threads in ("1", "2", "5"):
        env = os.environ | {"FUSEC_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        run = subprocess.run([sys.executable, "-c", THREADS], env=env, check=True, capture_output=True, text=True)
        found.add(run.stdout)
    assert len(found) == 1


def threads_of_blas():
    import ctypes

    return ctypes.CFUNCTYPE(ctypes.c_int)(blas.library().get)()


def set_threads_of_blas(count):
    import ctypes

    ctypes.CFUNCTYPE(None, ctypes.c_int)(blas.library().set)(count)


@needs_blas
def test_blas_keeps_its_threads_where_several_threads_multiply():
    before = threads_of_blas()
    fused = fusec.fuse(lambda a, b: a @ b)
    a = normal((300, 300), "float64")
    wanted, problems = fused(a, a), []

    def multiply():
        for _ in range(30):
            if fused(a, a).tobytes() != wanted.tobytes():
                problems.append("fused")
            if not np.allclose(a @ a, wanted):
                problems.append("numpy")

    try:
        set_threads_of_blas(2)
        workers = [threading.Thread(target=multiply) for _ in range(4)]
        for each in workers:
            each.start()
        for each in workers:
            each.join()
        assert not problems
        assert threads_of_blas() == 2
    finally:
        set_threads_of_blas(before)


FORKED = """
import os, ctypes, numpy as np, fusec
from fusec.runtime.cpu import blas, products
fused = fusec.fuse(lambda a, b: a @ b)
a = np.ones((300, 300))
for _ in range(3):
    fused(a, a)
get = ctypes.CFUNCTYPE(ctypes.c_int)(blas.library().get)
before = get()
first, last = products.holding(None)
first.run(products.hold_slots().buffer_info()[0], 1)
pid = os.fork()
if not pid:
    good = get() == before and (fused(a, a) == 300).all() and list(blas.hold().words)[:2] == [0, 0]
    os._exit(0 if good else 3)
status = os.waitpid(pid, 0)[1]
last.run(products.hold_slots().buffer_info()[0], 1)
assert get() == before and os.waitstatus_to_exitcode(status) == 0
"""


@needs_blas
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_begins_with_all_threads_of_blas():
    env = os.environ | {"OPENBLAS_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", FORKED], env=env, check=True, timeout=60)


def test_numpy_multiplies_where_its_blas_is_unknown(monkeypatch):
    monkeypatch.setattr(blas, "library", lambda: None)
    a, b = normal((50, 60), "float32"), normal((60, 70), "float32", 1)
    fused = fusec.fuse(lambda a, b: a @ b + 0)
    for _ in range(12):
        assert fused(a, b).tobytes() == (a @ b + 0).tobytes()


def test_matrices_and_their_transposes_are_left_to_numpy():
    a = normal((60, 50), "float64")
    fused = fusec.fuse(lambda a: a @ a.T)
    for _ in range(12):
        found = fused(a)
        assert found.tobytes() == (a @ a.T).tobytes()
        assert (found == found.T).all()


@pytest.mark.parametrize("integer", [4, 8])
@pytest.mark.parametrize("letter", "sdcz")
def test_texts_compile_for_all_kinds_of_libraries(letter, integer):
    for is_vector in (False, True):
        assert jit.emit("product", product_text(letter, is_vector, integer), "short")


def test_texts_that_hold_blas_compile():
    assert jit.emit("hold", hold_text(True), "short")
    assert jit.emit("release", hold_text(False), "short")


def no_store():
    return None


@needs_blas
@given(st.integers(2, 5000), st.integers(2, 5000), st.integers(1, 5000), st.integers(1, 40))
def test_blocks_cover_results_and_are_few(rows, columns, inner, pairs):
    matrices = Matrix(False, rows, rows * inner), Matrix(False, inner, 0), Matrix(False, rows, rows * columns)
    found = products.product(ProductSizes(rows, columns, inner, pairs), matrices, [(0, 0, 0)], np.dtype("f4"), no_store)
    words = dict(zip(products.GEMM, found.template, strict=False))
    down = words["row_blocks"]
    along = words["blocks"] // down
    assert (down - 1) * words["block_rows"] < rows <= down * words["block_rows"]
    assert (along - 1) * words["block_columns"] < columns <= along * words["block_columns"]
    is_striped = down == 1 and words["block_columns"] >= products.LEAST_COLUMNS // 2
    assert found.positions == pairs * down * along
    assert is_striped or found.positions <= max(products.MOST_BLOCKS, pairs)
