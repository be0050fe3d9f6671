"""Collections of garbage leave out what was there before a module's tests began.

Some tests ask for hundreds of collections, each of which would go through all that a long run has imported, collected
and compiled by then: that made these tests ten times as slow as they are alone.

First calls wait for the compiler, so that tests see compiled code; tests of the tiers interpret them.
"""

import gc
import os

import pytest

os.environ.setdefault("FUSEC_TIERS", "0")


@pytest.fixture(scope="module", autouse=True)
def _collections_skip_what_was_there() -> None:
    gc.collect()
    gc.freeze()
