"""Calls that the interpreter answers, as it does first calls, while their kernels are not compiled."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fusec.base import background


@contextmanager
def interpreted() -> Iterator[None]:
    """A block of such calls. Calls that the interpreter does not take are compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FUSEC_TIERS", "1")
        patch.setattr(background, "submit", lambda job: True)
        yield
