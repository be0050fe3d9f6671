"""Errors for arguments that are read as copies in the machine's byte order, or from another library's memory."""

from __future__ import annotations

from typing import Any

from fusec.errors.arguments import UnsupportedDtype
from fusec.fusion.trace.lines import here
from fusec.fusion.trace.trace_values import Storage


def unwritable(trace: Any, memory: Storage) -> Exception:
    """The error for a write to memory that is read-only, or converted."""
    buffer = memory.buffer
    if buffer is None or buffer.kind != "argument" or buffer.place not in trace.swapped:
        name = trace.labelled.get(buffer.place, "") if buffer is not None and buffer.kind == "argument" else ""
        why = f": a {name} is read as an array; write to its copy, x.to_numpy(copy=True)" * bool(name)
        return ValueError(f"assignment destination is read-only{why}")
    return in_other_order(trace, buffer.place)


def in_other_order(trace: Any, place: int) -> Exception:
    """The error for a use of an argument's own bytes, of which kernels read a copy in another order."""
    cure = "pass a copy in the machine's byte order, x.astype(x.dtype.newbyteorder('='))"
    param, given = trace.swapped[place]
    return UnsupportedDtype(trace.name, param, given, cure).at(here())
