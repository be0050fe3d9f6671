"""Run by test_stub_driver.py: everyday programs on a device have the bits of the CPU."""

import copy
import sys
from pathlib import Path

import cupy_over_stub
import numpy as np
import pytest
from under_stub_fuse import cupy  # noqa: F401 - a fixture

import fusec
from fusec.runtime import cuda

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.programs import images, neural, simulations, statistics
from tests.programs.program import PROGRAMS

pytestmark = pytest.mark.usefixtures("host_twins")
LOADED = (images, neural, simulations, statistics)  # these fill the table


def mapped(function, given):
    if isinstance(given, (tuple, list)):
        return type(given)(mapped(function, each) for each in given)
    return function(given)


def there(value):
    return cuda.from_numpy(value) if isinstance(value, np.ndarray) else value


def here(value):
    if isinstance(value, cupy_over_stub.ndarray):
        return value.get()
    return value.numpy() if isinstance(value, cuda.CudaArray) else np.asarray(value)


@pytest.mark.parametrize("library", ["fusec", "cupy"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_has_the_bits_of_the_cpu_on_a_device(name, library, cupy):  # noqa: F811 - the fixture
    program, make = PROGRAMS[name], there
    if library == "cupy":
        make = lambda value: cupy.asarray(value) if isinstance(value, np.ndarray) else value  # noqa: E731
    fused, beside, given = fusec.fuse(program.function), fusec.fuse(program.function), program.given(1, 6)
    for _ in range(4):  # one by one, at once, and twice as known
        mine, theirs = mapped(make, given), copy.deepcopy(given)
        found, wanted = fused(*mine), beside(*theirs)
        for one, other in ((found, wanted), (mine, theirs)):
            compared = []
            mapped(lambda value, compared=compared: compared.append(here(value)), one)
            rest = iter(compared)
            mapped(lambda value, rest=rest: np.testing.assert_array_equal(next(rest), np.asarray(value)), other)
