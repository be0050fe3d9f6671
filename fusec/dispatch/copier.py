"""A kernel that copies an array."""

from __future__ import annotations

from functools import cache

from fusec.arguments.signature import Parameter, Signature
from fusec.dispatch.call import KernelWithPlans
from fusec.dispatch.elementwise import ELEMENTWISE
from fusec.frontends.c.definition import Definition


@cache
def copier(converts: bool = False) -> KernelWithPlans:
    """The kernel, for arrays of one dtype, or of two."""
    name, kind = ("convert", "U") if converts else ("copy", "T")
    signature = Signature(name, (Parameter("x", "T", None),), (Parameter("y", kind, None),))
    return KernelWithPlans(Definition("T x", f"{kind} y", "y = x", name), signature, ELEMENTWISE)
