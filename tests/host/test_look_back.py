"""Scans in one pass: groups wait for each other's words in every order, and what spoils that is found."""

import re
from collections.abc import Callable
from dataclasses import replace
from math import prod

import cuda_on_host
import pytest
from guarded import KernelFault
from reduction_runs import Texts, assert_bits
from scan_runs import HELD, WAITING, Scanned, case

from fusec.codegen import cuda
from fusec.ir import interpret_scans, scans
from fusec.passes import hand_down, look_back, scan_columns, scan_rows

pytestmark = pytest.mark.skipif(cuda_on_host.GXX is None, reason="needs g++")
LAST = 32 * 2 * 64  # elements of a large chunk
BLOCK = 256  # threads: warps of one block run together, blocks one after the other
ORDERS = (0, 1, 2, 3)


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of two groups or of eight rows, so that few elements have many large chunks."""
    for module in (scans, scan_rows, look_back):
        monkeypatch.setattr(module, "GROUPS", 2)
    for module in (scan_rows, look_back):
        monkeypatch.setattr(module, "ELEMENTS", 64)
    for module in (scans, interpret_scans, scan_columns, hand_down):
        monkeypatch.setattr(module, "ROWS", 8)


def run(
    runs: list[Scanned],
    folder: object,
    orders: tuple[int, ...] = ORDERS,
    spoilt: Callable[[str], str] = lambda text: text,
    first: int = 0,
    seconds: int = 60,
) -> None:
    """Run scans on fibers. spoilt: changes texts. first: the number of the first launch. seconds: for one order."""
    texts = Texts(runs, cuda.generate)
    programs = cuda_on_host.BlockPrograms([spoilt(each) for each in texts.distinct], folder)  # type: ignore[arg-type]
    programs.seconds = seconds
    for number, each in enumerate(runs):
        pairs = zip(texts.launches(number, each, in_struct=False), each.phases, strict=True)
        sized = [replace(launch, grid=-(-prod(step.extents) // BLOCK), block=BLOCK) for launch, step in pairs]
        assert_bits(each, programs.run(sized[first:], each.buffers, orders))


@pytest.mark.parametrize("machine", [WAITING, HELD], ids=["twice", "held"])
@pytest.mark.parametrize("name", ["sum", "product", "both", "argmin"])
@pytest.mark.sampled(3)
def test_every_order_of_warps_gives_the_bits_of_the_oracle(machine, name, tmp_path):
    counts = (65, 64 * 32, 64 * 33 + 5, LAST, LAST + 64, 2 * LAST + 1)
    run([case(name, (2, count), 1, machine) for count in counts], tmp_path)


@pytest.mark.parametrize("machine", [WAITING, HELD], ids=["twice", "held"])
@pytest.mark.parametrize("name", ["sum", "exclusive", "product", "both", "argmin"])
@pytest.mark.sampled(3)
def test_columns_in_every_order_of_warps_have_the_bits_of_the_oracle(name, machine, tmp_path):
    """Of so many rows, chunks and large chunks; few blocks of many columns and many of few."""
    shapes = [(9, 40), (64, 32), (65, 300), (200, 33), (512, 35), (2, 131, 5, 7)]
    run([case(name, shape, len(shape) // 3, machine) for shape in shapes], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("machine", [WAITING, HELD], ids=["twice", "held"])
def test_totals_of_large_chunks_are_scanned(machine, tmp_path):
    run([case("sum", (1, LAST * count + 70), 1, machine) for count in (31, 32, 33)], tmp_path, (0, 1, 2))


def test_states_that_are_too_wide_and_rows_that_are_too_long_take_more_kernels():
    assert scans.fits_one_pass(64**3, [scans.INT64] * 4, True)
    assert not scans.fits_one_pass(64**3 + 1, [scans.INT64] * 4, True)
    assert not scans.fits_one_pass(64**3, [scans.INT64] * 5, True)
    assert scans.fits_one_pass(8**3, [scans.INT64] * 4, False)
    assert not scans.fits_one_pass(8**3 + 1, [scans.INT64] * 4, False)


def test_columns_that_are_few_take_more_kernels():
    """Fewer than the threads of a group, which would wait for each other, or fewer than the machine says."""
    for inner, outer, handed, count in [(31, 9, 1, 3), (32, 1, 1, 2), (32, 2, 65, 3), (32, 2, 64, 2)]:
        assert len(case("sum", (outer, 20, inner), 1, replace(WAITING, handed=handed)).phases) == count


# --- what spoils it --------------------------------------------------------------------------------------------------


def without(pattern: str, instead: str) -> Callable[[str], str]:
    """A change of the text of the kernel that looks back."""

    def change(text: str) -> str:
        if "__shared__" not in text:  # it clears words
            return text
        found, count = re.subn(pattern, instead, text)
        assert count, f"{pattern} is not in the text"
        return found

    return change


LONG = LAST + 64 * 40


def test_blocks_that_take_positions_by_their_numbers_wait_for_ever(tmp_path):
    """The last block runs first in this order, and waits for blocks that have no room."""
    by_number = without(r"turn = \(long long\)atomicAdd\([^;]*;", "turn = blockIdx.x;")
    with pytest.raises(KernelFault, match="a launch does not end"):
        run([case("sum", (1, LONG), 1, HELD)], tmp_path, (1,), by_number, seconds=2)


def test_totals_that_nobody_publishes_are_awaited_for_ever(tmp_path):
    silent = without(r"fusec_atomic_store_uint64\(seen_data \+ [^;]*& 31\)\),[^;]*;", ";")
    with pytest.raises(KernelFault, match="a launch does not end"):
        run([case("sum", (1, LONG), 1, HELD)], tmp_path, (0,), silent, seconds=2)


def test_totals_that_are_read_too_soon_are_wrong(tmp_path):
    hasty = without(r"while \(totalsw0_ < 4294967296ull\)", "while (false)")
    with pytest.raises((KernelFault, AssertionError), match=r"differ|is \["):
        run([case("sum", (1, LONG), 1, HELD)], tmp_path, ORDERS, hasty)


def test_halves_of_wide_values_of_which_one_is_there_are_wrong(tmp_path):
    """Threads change at every atomic, so also between the two stores of a float64."""
    half = without(r"while \(\(totalsw0_ & totalsw1_\) < 4294967296ull\)", "while (totalsw0_ < 4294967296ull)")
    with pytest.raises((KernelFault, AssertionError), match=r"differ|is \["):
        run([case("product", (1, LONG), 1, HELD)], tmp_path, (2, 3, 4, 5), half)


def test_carries_of_columns_that_nobody_publishes_are_awaited_for_ever(tmp_path):
    silent = without(r"fusec_atomic_store_uint64\([^;]*end_0[^;]*;", ";")
    with pytest.raises(KernelFault, match="a launch does not end"):
        run([case("sum", (512, 33), 0, HELD)], tmp_path, (0,), silent, seconds=2)


def test_totals_of_columns_that_are_read_too_soon_are_wrong(tmp_path):
    hasty = without(r"while \(!\(carry0w0_[^;]*;", "while (false);")
    with pytest.raises((KernelFault, AssertionError), match=r"differ|is \["):
        run([case("sum", (512, 33), 0, HELD)], tmp_path, ORDERS, hasty)


def test_words_that_are_not_cleared_are_found(tmp_path):
    with pytest.raises(KernelFault, match="uninitialised memory"):
        run([case("sum", (1, LONG), 1, HELD)], tmp_path, (0,), first=1)


def test_plain_accesses_of_words_are_races(tmp_path):
    plain = without(r"\(const volatile unsigned long long\*\)address", "address")
    with pytest.raises(KernelFault, match=r"race|does not end"):
        run([case("sum", (1, LONG), 1, HELD)], tmp_path, (0,), plain, seconds=2)
