"""Hypothesis draws programs of array operations, and arrays for them, from the tables that fuzzers draw from too."""

from hypothesis import strategies as st

from tests.support.array_programs import DTYPES, LAYOUTS, SHAPES, STEPS, array_of

arrays = st.builds(array_of, *(st.sampled_from(each) for each in (SHAPES, DTYPES, LAYOUTS)), st.integers(0, 99))
steps = st.one_of(st.tuples(st.just(what), *(st.sampled_from(choices) for choices in rest)) for what, *rest in STEPS)
programs = st.lists(steps, min_size=1, max_size=8)
