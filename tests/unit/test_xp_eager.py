"""Eager blocks, and reports of the memory that lazy arrays hold."""

import asyncio
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import fusec.xp as xp
from fusec.xp import recording


def is_pending(array):
    return array._tape is not None


def test_operations_in_an_eager_block_are_computed_at_once():
    x = xp.asarray(np.arange(6.0))
    with xp.eager():
        found = [
            x + 1,
            2 - x,
            x * x,
            -x,
            np.sin(x),
            xp.sum(x),
            xp.concat([x, x]),
            x[xp.asarray([1, 2])],
            x.astype("f4"),
        ]
        found += [*xp.meshgrid(x, x), found[0] * 2, abs(found[1]), x.reshape(2, 3).T @ xp.ones(2)]
        assert not any(map(is_pending, found))
    assert is_pending(x + 1)
    assert recording.EAGER_BLOCKS == []


def test_what_was_pending_before_an_eager_block_is_computed_when_it_is_touched():
    x = xp.asarray(np.arange(6.0))
    touched, other, also = x + 1, xp.asarray(np.ones(6)) * 2, xp.asarray(np.ones(6)) * 3
    with xp.eager():
        assert is_pending(touched)
        y = touched * 2
        assert not is_pending(touched)
        also += y
    assert is_pending(other)
    assert not is_pending(also)
    assert np.asarray(also).tolist() == [5, 7, 9, 11, 13, 15]


def test_writes_in_an_eager_block_are_done_at_once():
    own = np.arange(4.0)
    x = xp.asarray(own)
    before = x * 2
    with xp.eager():
        x[0] = 7.0
        assert own[0] == 7
        x += 1
        assert own.tolist() == [8, 2, 3, 4]
        np.add(x, 1, out=x)
        assert own.tolist() == [9, 3, 4, 5]
    assert np.asarray(before).tolist() == [0, 2, 4, 6]


def test_errors_come_at_the_line_in_an_eager_block():
    x, index = xp.asarray(np.arange(4.0)), xp.asarray([7])
    recorded = x[index]
    with xp.eager(), pytest.raises(IndexError):
        x[index]
    with pytest.raises(IndexError):
        recorded.compute()


def test_eager_blocks_are_nested_and_belong_to_threads_and_tasks():
    x = xp.asarray(np.arange(4.0))
    begin, done, seen = threading.Event(), threading.Event(), []

    def work():
        begin.wait(60)
        seen.append(is_pending(x * 3))
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    with xp.eager():
        with pytest.raises(ValueError, match="end"), xp.eager():
            raise ValueError("end")
        assert not is_pending(x + 1)
        begin.set()
        done.wait(60)
    thread.join()
    assert seen == [True]

    async def task(is_eager):
        if is_eager:
            with xp.eager():
                await asyncio.sleep(0)
                return is_pending(x + 2)
        await asyncio.sleep(0)
        return is_pending(x + 2)

    async def both():
        return await asyncio.gather(task(True), task(False), task(True))

    assert asyncio.run(both()) == [False, True, False]


@pytest.mark.parametrize(("text", "expected"), [("1", "False"), ("0", "True"), ("", "True"), ("2", "F300")])
def test_an_environment_variable_makes_a_program_eager(text, expected):
    program = "import fusec.xp as xp; print((xp.ones(3) + 1)._tape is not None)"
    given = {**os.environ, "FUSEC_EAGER": text}
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=given, check=False)
    assert expected in found.stdout + found.stderr


def test_memory_is_counted_once_for_each_owner():
    before = xp.memory_stats()
    x = xp.asarray(np.zeros((1000, 100)))
    views = [x[1:], x.T, xp.asarray(np.asarray(x)[::2])]
    y = xp.asarray(np.ones(1000)) * 2  # only the tape holds its operand
    now = xp.memory_stats()
    assert now.held["cpu"] - before.held["cpu"] == 800_000
    assert now.recorded["cpu"] - before.recorded["cpu"] == 8000
    assert (now.arrays - before.arrays, now.pending - before.pending) == (2 + len(views), 1)
    y.compute()
    after = xp.memory_stats()
    assert after.recorded == before.recorded
    assert after.held["cpu"] - before.held["cpu"] == 808_000
    assert after.pending == before.pending
    del x, y, views
    assert xp.memory_stats().held == before.held
    assert xp.memory_stats().pools["cpu"] >= 0
