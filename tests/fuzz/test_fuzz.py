"""Some programs of every door, and the runner's own law: whatever goes wrong is reported with its seed."""

import json
import os

import numpy as np
import pytest

from fusec import FusecError
from fusec.runtime.cpu import processor
from tests.fuzz.doors import BLOCK, DOORS, enter, environment
from tests.fuzz.findings import FindingError
from tests.fuzz.fuse_door import compare
from tests.fuzz.runner import Runner, Task, tasks_of


@pytest.mark.parametrize(("door", "count"), [("kernel", 40), ("function", 30), ("evaluate", 100), ("fuse", 40)])
def test_no_program_goes_wrong(door, count):
    check = DOORS[door].check
    for seed in range(count):
        check(seed)


def test_infinities_may_have_the_sign_of_a_zero_that_numpy_leaves_open():
    found, expected = [np.array([np.inf, 1])], [np.array([-np.inf, 1])]
    compare(found, expected, [("number", np.minimum, 3, 0, False), ("binary", np.divide, 1, 2)], "")
    with pytest.raises(FindingError, match="sign"):
        compare([np.array([0.0])], [np.array([-0.0])], [], "")
    with pytest.raises(FindingError, match="layout"):
        compare([np.ones((2, 2))], [np.ones((2, 2)).T], [], "")


def test_every_way_to_go_wrong_is_reported_with_its_seed(tmp_path, monkeypatch):
    monkeypatch.setenv("FUZZ_HANG_SECONDS", "0.5")
    runner = Runner(1, 60, tmp_path / "found")
    assert runner.run([Task("broken", 0, 7)]) == 4
    rows = [json.loads(line) for line in (tmp_path / "found").read_text().splitlines()]
    assert {row["seed"]: row["kind"] for row in rows} == {1: "bits", 2: "crash", 3: "hang", 4: "fuzzer"}
    assert "Segmentation fault" in rows[1]["detail"]
    assert "broken_door.py" in rows[2]["detail"]  # where it hangs
    assert runner.tallies["broken"].programs == 5  # all but those that ended their process


def test_tasks_take_every_seed_once_and_no_door_waits_for_another():
    tasks = list(tasks_of({"kernel": 700, "fuse": 70}, 480, 100))
    for door, count in (("kernel", 700), ("fuse", 70)):
        seeds = [seed for task in tasks if task.door == door for seed in range(task.first, task.stop)]
        assert seeds == list(range(480, 480 + count))
    assert {task.door for task in tasks[:2]} == {"kernel", "fuse"}


def test_settings_that_name_no_processor_are_put_in_force(monkeypatch):
    for name in ("FUSEC_CPU", "FUSEC_CACHE", "FUSEC_NUM_THREADS"):
        monkeypatch.setenv(name, "0")
        monkeypatch.delenv(name)
    seed = next(each for each in range(0, 64 * BLOCK, BLOCK) if "FUSEC_CPU" not in environment(each))
    monkeypatch.setattr(processor, "processor", refused)
    enter(seed)
    assert os.environ["FUSEC_CACHE"] == "0"


def refused():
    raise FusecError("no such processor")
