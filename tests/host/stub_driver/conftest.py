import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # stub and handwritten are used by both processes


@pytest.fixture(scope="module")
def host_twins():
    """Give every cubin a twin compiled for the host."""
    import stub

    with stub.host_twins():
        yield
