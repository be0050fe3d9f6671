"""Failures of lazy arrays: they stay with what fails, and a failed write is left out once its error is raised."""

import gc
from contextlib import suppress
from weakref import ref

import numpy as np
import pytest

import fusec.xp as xp
from tests.unit.test_xp_writes import interrupted_at

FAR = xp.asarray([9])
ERRORS = (IndexError, OverflowError, np.linalg.LinAlgError)
FAILING = {
    "gather": lambda x: x[FAR] * 2,
    "take": lambda x: xp.take(x + 1, FAR),
    "inverse": lambda x: xp.linalg.inv(xp.zeros((2, 2)) * x[0]),
    "Cholesky": lambda x: xp.linalg.cholesky(xp.zeros((2, 2)) * x[0] - 1) @ xp.ones((2, 2)),
}
WRITES = {
    "assignment": lambda x: x.__setitem__(FAR, 5),
    "sum": lambda x: x.__setitem__(FAR, x[FAR] + 1),
    "put": lambda x: np.put(x, FAR, 5),
    "add.at": lambda x: np.add.at(x, FAR, 1),
    "value": lambda x: x.__setitem__(slice(0, 2), xp.linalg.inv(xp.zeros((2, 2)) * x[0])[0]),
    "in place": lambda x: x.__iadd__(xp.sum(x[FAR])),
    "view": lambda x: x[1:].__setitem__(FAR, x[0]),
}


@pytest.fixture(params=["computed", "pending", "NumPy's"])
def x(request):
    """Six ones."""
    return {"computed": xp.ones(6), "pending": xp.zeros(6) + 1, "NumPy's": xp.asarray(np.ones(6))}[request.param]


@pytest.mark.parametrize("fails", FAILING.values(), ids=FAILING)
def test_arrays_have_their_values_beside_one_that_fails(x, fails):
    x[2:5] += 1
    before, bad = x * 2, fails(x)
    x[0] = 7
    for _ in range(2):
        with pytest.raises(ERRORS):
            xp.compute(x, before, bad)
        assert x.tolist() == [7, 1, 2, 2, 2, 1]
        assert before.tolist() == [2, 2, 4, 4, 4, 2]
    x *= 3
    with pytest.raises(ERRORS):
        bad.compute()
    assert x.tolist() == [21, 3, 6, 6, 6, 3]


@pytest.mark.parametrize(
    "write", [lambda x: x.__iadd__(1), lambda x: x.fill(2), lambda x: x.__setitem__(xp.arange(6), 2)]
)
def test_writes_are_recorded_whatever_fails_to_read_the_array(x, write):
    bad = x[FAR]
    good = x + 1
    write(x)
    assert x.tolist() == [2] * 6
    assert good.tolist() == [2] * 6
    for _ in range(2):
        with pytest.raises(IndexError):
            bad.tolist()


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_failed_write_raises_its_error_once_and_is_left_out(x, write):
    apart = x * 2
    x += 1
    write(x)
    x[1:3] *= 5
    view, twice = x[::2], x * 2
    assert apart.tolist() == [2] * 6  # which does not need the write
    with pytest.raises(ERRORS) as caught:
        view.tolist()
    assert caught.value.span.text.strip().startswith(('"', "x", "write"))
    assert x.tolist() == [2, 10, 10, 2, 2, 2]
    assert twice.tolist() == [4, 20, 20, 4, 4, 4]
    assert view.tolist() == [2, 10, 2]
    x[:] = 0
    assert not x.any()


def test_every_failed_write_raises_its_own_error_in_order(x):
    x[FAR] = 1  # first
    x[0] = 4
    x[FAR] = 2  # second
    for line in ("# first", "# second"):
        with pytest.raises(IndexError) as caught:
            x.compute()
        assert caught.value.span.text.endswith(line)
    assert x.tolist() == [4, 1, 1, 1, 1, 1]


def test_one_failed_operation_raises_once_for_all_writes_that_need_it(x):
    y, bad = xp.zeros(6), xp.linalg.inv(xp.zeros((2, 2)))
    x[0] = bad[0, 0]
    x[1] = bad[1, 1]
    y[:2] = bad[0]
    with pytest.raises(np.linalg.LinAlgError):
        x.compute()
    assert x.tolist() == [1] * 6
    with pytest.raises(np.linalg.LinAlgError):
        y.compute()
    assert y.tolist() == [0] * 6
    with pytest.raises(np.linalg.LinAlgError):
        bad.compute()


def test_a_write_at_once_does_not_raise_the_error_of_an_earlier_one():
    x = xp.zeros(40)
    x[FAR + 90] = 1
    for at in range(40):
        x[at] = at
    with pytest.raises(IndexError):
        x.compute()
    assert x.tolist() == [*range(40)]


def test_memory_that_several_arrays_share_is_copied_together():
    memory = np.arange(8.0)
    x, y = xp.asarray(memory), xp.asarray(memory[2:])
    x[:3] += 10
    y[0] += 10
    bad = (x + 1)[y[:1].astype(int)]
    y[-1] = -1
    x[1] = -1
    for _ in range(2):
        with pytest.raises(IndexError):
            xp.compute(bad, x)
        assert memory.tolist() == [10, -1, 22, 3, 4, 5, 6, -1]
        assert y.tolist() == memory[2:].tolist()
    with pytest.raises(IndexError, match="index 22 is out of bounds"):
        bad.compute()


def test_what_failed_frees_its_memory_without_the_garbage_collector(x):
    gc.disable()
    try:
        bad, good = x[FAR], x + 1
        x += 1
        known = ref(good)
        with pytest.raises(IndexError):
            xp.compute(bad, good, x)
        del bad, good
        assert known() is None
    finally:
        gc.enable()


def test_no_memory_for_one_array_leaves_the_others_readable():
    x = xp.asarray(np.zeros(2**22))
    x[0] = 1
    vast = xp.reshape(x, (-1, 1)) + x
    corner = vast[:2, 0] + 1
    with pytest.raises(MemoryError):
        xp.compute(vast, corner, x)
    assert corner.tolist() == [3, 2]
    assert x[:2].tolist() == [1, 0]
    x[0] = 5
    with pytest.raises(MemoryError):
        vast.compute()
    assert x[:2].tolist() == [5, 0]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_writes_beside_a_failure_happen_once_wherever_the_evaluation_is_interrupted():
    at = 1
    while True:
        memory = np.arange(6.0)
        x, apart = xp.asarray(memory), xp.zeros(3)
        x += 1
        bad = x[FAR]
        apart += 4
        apart[FAR] = 1
        x *= 2

        def run(x=x, bad=bad, apart=apart):
            with pytest.raises(IndexError):
                xp.compute(x, bad, apart)

        is_interrupted = interrupted_at(at, run)
        assert x.tolist() == memory.tolist() == [2, 4, 6, 8, 10, 12]
        with pytest.raises(IndexError):
            bad.compute()
        with suppress(IndexError):  # unless it was raised before
            apart.compute()
        assert apart.tolist() == [4] * 3
        if not is_interrupted:
            break
        at += 211
    assert at > 300
