"""The host machine: threads, cache, memory; read once, from the operating system."""

from __future__ import annotations

import math
import os
from functools import cache
from pathlib import Path

from fusec.environment import settings

MOST_THREADS = 256  # beyond this one shared ticket is contended
USUAL_CACHE = 32 << 20  # bytes; assumed where the system does not tell


@cache
def last_level_cache_bytes() -> int:
    """Size of the largest data cache of the first core; 32 MiB if the system does not report it."""
    sizes = [_size(folder) for folder in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")]
    return max((*sizes, _sysconf("SC_LEVEL3_CACHE_SIZE"))) or USUAL_CACHE


def _size(folder: Path) -> int:
    """Bytes of one cache in sysfs, where sizes read like ``32768K``; 0 for instruction caches."""
    try:
        if (folder / "type").read_text().strip() == "Instruction":
            return 0
        text = (folder / "size").read_text().strip()
        unit = {"K": 1 << 10, "M": 1 << 20}.get(text[-1:], 1)
        return int(text.rstrip("KM")) * unit
    except (OSError, ValueError):
        return 0


def _sysconf(name: str) -> int:
    """A non-negative value of sysconf, 0 where it is not known."""
    try:
        return max(0, os.sysconf(name))
    except (AttributeError, OSError, ValueError):
        return 0


@cache
def memory_bytes() -> int:
    """Physical memory; 8 GiB if the system does not report it."""
    return _sysconf("SC_PHYS_PAGES") * _sysconf("SC_PAGE_SIZE") or 8 << 30


@cache
def thread_count() -> int:
    """The number of threads of a kernel: FUSEC_NUM_THREADS, else the cores of this process within its CPU quota.

    Raises SettingNotUnderstood if FUSEC_NUM_THREADS is not a positive number.
    """
    asked = settings.number_of("FUSEC_NUM_THREADS")
    return max(1, min(asked or min(_available_cores(), _quota()), MOST_THREADS))


def _available_cores() -> int:
    """Cores in the affinity mask, or all where masks are unknown."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quota() -> int:
    """Cores that the control group's CPU quota pays for, rounded up; a large number if there is no quota."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return math.ceil(int(quota) / int(period))
    except (OSError, ValueError, ZeroDivisionError):  # no control groups, or "max"
        return MOST_THREADS
