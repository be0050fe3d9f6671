"""Run by test_stub_driver.py: everyday programs on a device have the bits of the CPU."""

import copy
import sys
from pathlib import Path

import numpy as np
import pytest
from under_stub_fuse import _host_twins, cupy  # noqa: F401 - fixtures

import fusec
from fusec.runtime import cuda

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.programs import images, neural, simulations, statistics
from tests.programs.program import PROGRAMS

LOADED = (images, neural, simulations, statistics)  # these fill the table


def mapped(function, given):
    if isinstance(given, (tuple, list)):
        return type(given)(mapped(function, each) for each in given)
    return function(given)


def there(value):
    return cuda.from_numpy(value) if isinstance(value, np.ndarray) else value


def here(value):
    return value.numpy() if isinstance(value, cuda.CudaArray) else np.asarray(value)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_has_the_bits_of_the_cpu_on_a_device(name, cupy):  # noqa: F811 - the fixture
    program = PROGRAMS[name]
    fused, beside, given = fusec.fuse(program.function), fusec.fuse(program.function), program.given(1, 6)
    for _ in range(2):
        mine, theirs = mapped(there, given), copy.deepcopy(given)
        found, wanted = fused(*mine), beside(*theirs)
        for one, other in ((found, wanted), (mine, theirs)):
            compared = []
            mapped(lambda value, compared=compared: compared.append(here(value)), one)
            rest = iter(compared)
            mapped(lambda value, rest=rest: np.testing.assert_array_equal(next(rest), np.asarray(value)), other)
