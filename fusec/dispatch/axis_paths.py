"""The fast paths of a reduction or a scan, which answer repeated calls before their arguments are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fusec.base.recent import Recent
from fusec.base.records import dataclass, field
from fusec.dispatch.axis_spec import Along
from fusec.dispatch.spec import MAX_PLANS

Callee = Callable[..., Any]


def choice_of(along: Along, given: bool) -> tuple[object, bool, bool]:
    """The key of fast paths: the axis, whether it is kept or reversed, and whether the outputs are given."""
    return along.axis, along.keepdims or along.reverse, given


@dataclass
class Paths:
    """Fast paths of a kernel, or of the variants that share them, by `choice_of`."""

    quick: dict[object, Callee] = field(default_factory=dict)  # what is tried first
    repeated: dict[object, Any] = field(default_factory=dict)  # its part for arrays on a device
    chains: dict[object, Any] = field(default_factory=dict)  # its native entries
    several: Recent[object, Any] = field(default_factory=lambda: Recent(MAX_PLANS))  # known calls of several kernels
