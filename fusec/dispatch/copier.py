"""A kernel that copies an array."""

from __future__ import annotations

from functools import cache

from fusec.arguments.signature import Parameter, Signature
from fusec.dispatch.call import KernelWithPlans
from fusec.dispatch.elementwise import ELEMENTWISE
from fusec.frontends.c.definition import Definition


@cache
def copier(converts: bool = False, conjugates: bool = False) -> KernelWithPlans:
    """The kernel, for arrays of one dtype, or of two; it may store the conjugates instead."""
    name, kind = "_".join(["convert"] * converts + ["conjugate"] * conjugates) or "copy", "U" if converts else "T"
    signature = Signature(name, (Parameter("x", "T", None),), (Parameter("y", kind, None),))
    return KernelWithPlans(
        Definition("T x", f"{kind} y", "y = conj(x)" if conjugates else "y = x", name), signature, ELEMENTWISE
    )
