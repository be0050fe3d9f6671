import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # stub and handwritten are used by both processes


@pytest.fixture(scope="session", autouse=True)
def _collections_skip_what_was_imported() -> Iterator[None]:
    """On the stand-in every test begins with a collection; what was imported would make it a third of the time."""
    if "FUSEC_STUB_KERNELS" in os.environ:
        gc.collect()
        gc.freeze()
    yield
    gc.unfreeze()
