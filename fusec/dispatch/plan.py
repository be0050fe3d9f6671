"""A plan: everything about a call that follows from dtypes, shapes and strides, so that a repeated call only fills in
addresses and numbers.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from math import prod
from typing import Generic, NamedTuple, TypeVar

from fusec.arguments.layouts import Shape
from fusec.arguments.signature import Parameter
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Kernel
from fusec.base.records import dataclass
from fusec.dispatch.spec import Bound, KernelSpec
from fusec.kinds.launch import Launch
from fusec.kinds.slots import Arguments

Code = TypeVar("Code")  # machine code, as a backend runs it

ALIGNED = 256  # bytes, as a driver's own memory


@dataclass(frozen=True)
class CompiledLaunch(Generic[Code]):
    """One kernel of a plan, with its arguments; of a composite, all kernels."""

    launch: Launch
    code: Code
    arguments: Arguments


class NewArray(NamedTuple):
    """An output to allocate."""

    param: Parameter
    shape: Shape
    dtype: DType
    order: Shape | None = None  # axes from outermost to innermost in memory, None for C order
    zeroed: bool = False


@dataclass(frozen=True, eq=False)
class Plan(Generic[Code]):
    """The compiled kernels of a call for one combination of dtypes, shapes, strides and axes."""

    bound: Bound
    steps: tuple[CompiledLaunch[Code], ...]  # what runs, in order
    kernels: tuple[Kernel, ...]  # of these, or of the composite that is the only step
    outputs: tuple[NewArray, ...]  # for calls that give none
    zeroed: frozenset[str]  # outputs whose former content counts, so that new ones start as zeros
    nbytes: int  # of the memory between the kernels
    offsets: Mapping[str, int]  # where arrays lie there, in bytes, by their names among all kernels

    is_idle: bool  # a call runs nothing


def new_arrays(kernel: KernelSpec, bound: Bound, zeroed: Container[str]) -> tuple[NewArray, ...]:
    """The outputs of calls that give none. zeroed: those that begin as zeros."""
    types, orders = bound.types, bound.orders
    return tuple(
        [
            NewArray(param, shape, types[param.name], orders.get(param.name), param.name in zeroed)
            for param, shape in zip(kernel.out_params, bound.shapes, strict=True)
        ]
    )


def planned(
    kernel: KernelSpec, bound: Bound, steps: Sequence[CompiledLaunch[Code]], kernels: Sequence[Kernel]
) -> Plan[Code]:
    """The plan of compiled launches. kernels: those that they run."""
    zeroed, offsets, nbytes = set(bound.read), dict[str, int](), 0
    for each in kernels:
        zeroed.update(each.fills)
    outputs = new_arrays(kernel, bound, zeroed)
    for step in steps:
        for name, shape, dtype in step.launch.made:
            offsets[name] = nbytes
            nbytes += -(-prod(shape) * dtype.nbytes // ALIGNED) * ALIGNED
    is_idle = not steps or not steps[0].launch.positions
    return Plan(bound, tuple(steps), tuple(kernels), outputs, frozenset(zeroed), nbytes, offsets, is_idle)
