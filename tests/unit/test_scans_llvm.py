"""Scans on the CPU: the bits of the oracle for every width of vectors; and those of this machine on lesser ones."""

import hashlib
import os
import platform
import subprocess
import sys

import numpy as np
import pytest

from fusec import passes
from fusec.base.records import replace
from fusec.codegen.llvm import LlvmOptions, generate, generate_walk
from tests.support.llvm_runner import fresh_symbol, layout_of, run
from tests.support.scan_examples import EXAMPLES, inputs, oracle, scanned


def compiled(make, bits):
    """Runs programs as kernels, parted in two; of those with groups, between groups."""

    def run_program(program, arrays, scalars, space):
        program = passes.run(program, check=True)
        layout = layout_of(program, arrays, space)
        kernel = make(program, layout, LlvmOptions(vector_bits=bits, symbol=fresh_symbol(program.name)))
        run(kernel, program, arrays, scalars, space, cuts=(np.prod(space) // 2 // kernel.group * kernel.group,))

    return run_program


@pytest.mark.parametrize(("name", "bits"), [("sum", 256), ("argmin", 512), ("both", 512)])
def test_rows_give_the_bits_of_the_oracle(name, bits):
    check(name, generate, bits, [((2, 33), 1), ((3, 4200), 1)])


@pytest.mark.slow
@pytest.mark.parametrize("bits", [512, 256, 0])
@pytest.mark.parametrize("name", EXAMPLES)
def test_rows_give_the_bits_of_the_oracle_at_every_boundary(name, bits):
    check(name, generate, bits, [((2, count), 1) for count in (1, 31, 32, 64, 65, 2047, 2049, 2080, 70 * 2048 + 1)])


@pytest.mark.parametrize("make", [generate, generate_walk])
@pytest.mark.parametrize("name", ["sum", "both"])
def test_columns_give_the_bits_of_the_oracle(name, make):
    check(name, make, 512, [((2, 65, 40), 1), ((1, 200, 7), 1)])


def around(program, layout, options):
    """Kernels of columns whose results go around the caches."""
    return generate_walk(program, replace(layout, streaming=True), options)


@pytest.mark.parametrize(("name", "bits"), [("both", 512), ("argmin", 512), ("sum", 256)])
def test_columns_around_the_caches_give_the_bits_of_the_oracle(name, bits):
    check(name, around, bits, [((2, 66, 53), 1), ((1, 65, 5), 1)])


@pytest.mark.slow
@pytest.mark.parametrize("make", [generate_walk, around])
@pytest.mark.parametrize("bits", [512, 256, 0])
@pytest.mark.parametrize("name", EXAMPLES)
def test_columns_give_the_bits_of_the_oracle_at_every_boundary(name, bits, make):
    shapes = [(2, count, 5) for count in (1, 2, 63, 64, 128, 64 * 64 + 1)] + [(1, 130, 9000)]
    check(name, make, bits, [(shape, 1) for shape in shapes])


def check(name, make, bits, cases):
    scan, names, outputs = EXAMPLES[name]
    for shape, axis in cases:
        given = inputs(names, shape, axis)
        expected = oracle(scan, given, outputs, shape, axis)
        for parted in (False, True):
            found = scanned(scan, given, outputs, shape, axis, compiled(make, bits), parted=parted)
            for output in outputs:
                assert expected[output].tobytes() == found[output].tobytes(), (output, shape, parted)


DIGEST = """
from tests.unit.test_scans_llvm import digest
print(digest())
"""


def digest():
    """Of the bits of scans over rows and columns, long enough for threads."""
    import fusec

    rng, found = np.random.default_rng(0), hashlib.sha256()
    x = rng.normal(size=(300000,)).astype("f4")
    for each, axis in ((x, 0), (x.reshape(300, 1000), 0), (x.reshape(300, 1000), 1), (x.reshape(60000, 5), 0)):
        found.update(fusec.cumsum(each, axis=axis).tobytes())
    found.update(fusec.cumsum(x.astype("f2"), axis=0).tobytes())
    return found.hexdigest()


LEVELS = ["sse2", "avx2"] if platform.machine() in ("x86_64", "AMD64") else ["generic"]


def test_lesser_processors_and_more_threads_leave_the_same_bits():
    here = digest()
    for number, level in enumerate(LEVELS):
        environment = {**os.environ, "FUSEC_CPU": level, "FUSEC_NUM_THREADS": str(1 + 2 * number)}
        done = subprocess.run(
            [sys.executable, "-c", DIGEST], env=environment, capture_output=True, text=True, check=False
        )
        assert done.stdout.strip() == here, done.stderr
