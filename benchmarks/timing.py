"""Repeat a call and keep what matters: the minimum, the median, and how busy others kept the machine meanwhile."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

SHORT = 100e-6  # calls below this are timed several at once


def busy() -> float | None:
    """CPU seconds all processes of the machine have used, or None where the kernel does not tell."""
    try:
        with open("/proc/stat") as file:
            fields = [int(field) for field in file.readline().split()[1:9]]
    except OSError:
        return None
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def measure(call: Callable[[], object], seconds: float, is_ready: bool = False) -> dict[str, float | None]:
    """Seconds per call over about `seconds`: minimum, median, number of calls, and the share of the machine's time
    that other processes used (None if unknown). is_ready: it was called before, so that one long call is enough.
    """
    clock, least = time.perf_counter, 1 if is_ready else 3
    if not is_ready:
        call()
    start = clock()
    call()
    once = clock() - start
    if is_ready and once > seconds:
        return {"min": once, "median": once, "calls": 1, "foreign": None}
    batch = max(1, int(SHORT / max(once, 1e-8))) if once < SHORT else 1
    times: list[float] = []
    others, own, begin = busy(), sum(os.times()[:2]), clock()
    while clock() - begin < seconds or len(times) < least:
        start = clock()
        for _ in range(batch):
            call()
        times.append((clock() - start) / batch)
    elapsed, own = clock() - begin, sum(os.times()[:2]) - own
    after = busy()
    foreign = None
    if others is not None and after is not None and elapsed > 0.1:
        foreign = max(0.0, (after - others - own) / (elapsed * (os.cpu_count() or 1)))
    times.sort()
    return {"min": times[0], "median": times[len(times) // 2], "calls": batch * len(times), "foreign": foreign}
