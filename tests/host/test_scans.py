"""Scans as emitted for GPUs: on fibers, in PTX and as Metal, each with the bits of the oracle."""

import cuda_on_host
import metal_on_host
import pytest
from scan_runs import ALONE, HELD, PARTED, WAITING, case
from test_reductions import check_fibers, check_metal, check_ptx

from tests.support.scan_examples import EXAMPLES

NARROW = [name for name in EXAMPLES if name != "product"]  # Metal has no float64
NEEDS_GXX = pytest.mark.skipif(cuda_on_host.GXX is None, reason="needs g++")
NEEDS_CLANG = pytest.mark.skipif(metal_on_host.CLANG is None, reason="needs clang")


def few(names):
    """Rows and columns, in one kernel, in one pass and in three kernels; a group that is not whole."""
    found = []
    for name in names:
        found += [case(name, (2, 2 * 2048 + 33), 1, machine) for machine in (ALONE, PARTED, WAITING, HELD)]
        found += [case(name, (130, 3), 0, machine) for machine in (ALONE, PARTED)]
        found += [case(name, (130, 33), 0, machine) for machine in (WAITING, HELD)]
    return found


def many(names):
    """Every boundary of groups and chunks; totals of totals."""
    found = []
    for name in names:
        for machine in (ALONE, PARTED):
            found += [case(name, (2, count), 1, machine, costly=True) for count in (33, 64, 2049, 4096, 70 * 2048 + 1)]
        for machine in (ALONE, PARTED, WAITING, HELD):
            found += [case(name, (2, count), 1, machine) for count in (33, 64, 2047, 2048, 2049, 4096, 70 * 2048 + 1)]
        for machine in (ALONE, PARTED):
            found += [case(name, (2, count, 3), 1, machine) for count in (1, 63, 64, 65, 128, 64 * 65 + 1)]
        for machine in (WAITING, HELD):
            found += [case(name, (2, count, 33), 1, machine) for count in (64, 65, 128, 129, 500, 64 * 65 + 1)]
    return found


@NEEDS_GXX
def test_cuda_text_gives_the_bits_of_the_oracle(tmp_path):
    runs = [case("both", (1, 2200), 1, PARTED), case("sum", (1, 2200), 1, ALONE)]
    runs += [case("argmin", (1, 4200), 1, PARTED, costly=True), case("exclusive", (2, 100), 1, ALONE, costly=True)]
    check_fibers([*runs, case("both", (1, 2200), 1, WAITING), case("sum", (2, 4200), 1, HELD)], tmp_path)


@pytest.mark.slow
@NEEDS_GXX
def test_cuda_text_gives_the_bits_of_the_oracle_at_every_boundary(tmp_path):
    check_fibers(many(EXAMPLES), tmp_path)


@NEEDS_CLANG
def test_metal_text_gives_the_bits_of_the_oracle(tmp_path):
    check_metal([case("argmin", (1, 2200), 1, ALONE), case("sum", (130, 3), 0, PARTED)], tmp_path)


@pytest.mark.slow
@NEEDS_CLANG
def test_metal_text_gives_the_bits_of_the_oracle_at_every_boundary(tmp_path):
    check_metal(many(NARROW), tmp_path)


def test_ptx_gives_the_bits_of_the_oracle():
    runs = [case("segments", (1, 2200), 1, ALONE), case("exclusive", (1, 2200), 1, PARTED)]
    runs += [case("exclusive", (1, 4200), 1, HELD), case("argmin", (2, 2200), 1, WAITING)]
    check_ptx([*runs, case("sum", (3, 130, 33), 1, HELD)], ["shuffled"])


@pytest.mark.slow
def test_ptx_gives_the_bits_of_the_oracle_for_all():
    check_ptx(few(EXAMPLES), ["ascending", "descending", "shuffled"])
