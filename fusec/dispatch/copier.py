"""A kernel that copies an array."""

from __future__ import annotations

from functools import cache

from fusec.arguments.signature import Parameter, Signature
from fusec.base.dtypes import DType
from fusec.dispatch.call import KernelWithPlans
from fusec.dispatch.elementwise import ELEMENTWISE
from fusec.frontends.c.definition import Definition


@cache
def copier(converts: bool = False, change: str = "x", factor: DType | None = None) -> KernelWithPlans:
    """The kernel, for arrays of one dtype, or of two. change: what it stores of an element x, such as "conj(x)".
    factor: the dtype of a number by which that is multiplied.
    """
    words = ["convert"] * converts + [change.removesuffix("(x)")] * (change != "x")
    words += [f"scale_{factor}"] * (factor is not None)
    name, kind = "_".join(words) or "copy", "U" if converts else "T"
    inputs = [Parameter("x", "T", None)] + ([] if factor is None else [Parameter("factor", factor.name, factor)])
    signature = Signature(name, tuple(inputs), (Parameter("y", kind, None),))
    body = f"y = {change}" if factor is None else f"y = {change} * factor"
    return KernelWithPlans(Definition(", ".join(map(str, inputs)), f"{kind} y", body, name), signature, ELEMENTWISE)
