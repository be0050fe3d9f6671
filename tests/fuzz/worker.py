"""One process that checks a block of programs: `python -m tests.fuzz.worker DOOR FIRST STOP`.

It writes a line for each program begun and ended, and one for each finding, as JSON. A program that takes more than
HANG seconds of CPU ends the process, with a traceback on stderr.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
import sys
import time
import traceback

from tests.fuzz.doors import DOORS, enter
from tests.fuzz.findings import FindingError

SLOW = 4.0  # seconds of CPU that no program may take; the first one of a process imports fusec, too
HANG = float(os.environ.get("FUZZ_HANG_SECONDS", "20"))
MEMORY = 12 << 30  # bytes of addresses


def tell(**facts: object) -> None:
    """Write one line, at once: the next program may end the process."""
    os.write(1, (json.dumps(facts) + "\n").encode())


def main(door: str, first: int, stop: int) -> None:
    """Check the programs from `first` up to `stop`."""
    faulthandler.enable()
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    faulthandler.register(signal.SIGPROF, chain=True)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    enter(first)
    check = DOORS[door].check
    tell(ready=first)
    for seed in range(first, stop):
        tell(begin=seed)
        started = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, HANG)
        try:
            check(seed)
        except FindingError as found:
            tell(seed=seed, kind=found.kind, detail=found.detail, text=found.text)
        except Exception:  # of the fuzzer itself, or of what it takes for granted
            tell(seed=seed, kind="fuzzer", detail=traceback.format_exc(), text="")
        signal.setitimer(signal.ITIMER_PROF, 0)
        took = time.process_time() - started
        if took > SLOW:
            tell(seed=seed, kind="slow", detail=f"{took:.1f} s of CPU", text="")
        tell(end=seed, took=round(took, 4))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
