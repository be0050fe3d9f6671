"""A kernel that copies an array."""

from __future__ import annotations

from functools import cache

from fusec.arguments.signature import Parameter, Signature
from fusec.dispatch.call import KernelWithPlans
from fusec.dispatch.elementwise import ELEMENTWISE
from fusec.frontends.c.definition import Definition


@cache
def copier() -> KernelWithPlans:
    """The kernel, for arrays of one dtype."""
    source, target = Parameter("x", "T", None), Parameter("y", "T", None)
    signature = Signature("copy", (source,), (target,))
    return KernelWithPlans(Definition("T x", "T y", "y = x", "copy"), signature, ELEMENTWISE)
