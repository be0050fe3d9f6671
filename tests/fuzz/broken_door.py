"""A door that goes wrong in every way that the runner must notice."""

import os
import signal

from tests.fuzz.findings import FindingError


def check(seed: int) -> None:
    """Wrong by seed."""
    match seed:
        case 1:
            raise FindingError("bits", "0 is 1", "the text")
        case 2:
            os.kill(os.getpid(), signal.SIGSEGV)
        case 3:
            while True:
                pass
        case 4:
            raise RuntimeError("the fuzzer itself")
