"""Laws of squares in shared memory: every word has a place of its own, and few threads of a warp meet in a bank."""

from collections import Counter

import pytest

from fusec.codegen.c_family.tiles import Tiles

BANKS, WARP = 32, 32


@pytest.mark.parametrize(("side", "lanes", "nbytes"), [(32, 1, 4), (32, 1, 8), (64, 2, 2), (64, 4, 1), (64, 4, 4)])
def test_threads_that_store_down_columns_and_load_along_rows_seldom_meet_in_a_bank(side, lanes, nbytes):
    tiles = Tiles(0, side, lanes, [], [], [], "row", "column", "k", "lane")
    words, size = tiles.words, max(1, lanes * nbytes // 4)  # size: of a word, in banks
    at = compile(tiles.column("row", "column").replace("/", "//"), "column", "eval")

    def place(row: int, column: int) -> int:
        return (row * words + eval(at, {"row": row, "column": column})) * size

    places = [place(row, column) for row in range(side) for column in range(words)]
    assert sorted(places) == list(range(0, side * words * size, size))
    together = WARP // size  # threads of which the words are moved at once
    rows = [[place(n // words, n % words) for n in range(start, start + together)] for start in range(0, 256, together)]
    columns = [
        [place(n % words * lanes + line, n // words) for n in range(start, start + together)]
        for line in range(lanes)
        for start in range(0, 256, together)
    ]
    for accesses, most in ((rows, 1), (columns, 2)):
        for each in accesses:
            assert max(Counter(place % BANKS for place in each).values()) <= most
