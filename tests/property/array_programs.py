"""Hypothesis draws programs of array operations, and arrays for them, from the tables that fuzzers draw from too."""

from typing import Any

from hypothesis import strategies as st

from tests.support.array_programs import DTYPES, LAYOUTS, SHAPES, STEPS, array_of

arrays = st.builds(array_of, *(st.sampled_from(each) for each in (SHAPES, DTYPES, LAYOUTS)), st.integers(0, 99))


def drawn_from(table: tuple[tuple[Any, ...], ...]) -> st.SearchStrategy[tuple[Any, ...]]:
    """A step of a table with its choices made."""
    return st.one_of(st.tuples(st.just(what), *(st.sampled_from(each) for each in rest)) for what, *rest in table)


programs = st.lists(drawn_from(STEPS), min_size=1, max_size=8)
