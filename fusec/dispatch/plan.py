"""A plan: everything about a call that follows from dtypes, shapes and strides, so that a repeated call only fills in
addresses and numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fusec.arguments.layouts import Shape
from fusec.arguments.signature import Parameter
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Fp
from fusec.base.records import dataclass
from fusec.compiler.pipeline import Specialisation

if TYPE_CHECKING:
    from fusec.arguments.operands import Array
    from fusec.runtime.cpu.engine import Executable
    from fusec.runtime.cuda import CompiledModule
from fusec.kinds.elementwise import Space
from fusec.kinds.slots import Arguments


@dataclass(frozen=True)
class Plan:
    """A compiled kernel with its arguments arranged for one combination of dtypes, shapes and strides.

    orders: for every output that was not given, its axes from outermost to innermost in memory; zeroed: its former
    content is read, so it starts as zeros.
    """

    executable: Executable
    arguments: Arguments
    space: Space
    types: Mapping[str, DType]
    orders: Mapping[str, tuple[int, ...]]

    def spec(self, numbers: frozenset[str], fp: Fp) -> Specialisation:
        """What source() shows after a call. numbers: inputs passed by value."""
        return Specialisation(tuple(self.types.items()), numbers, self.space.layout, fp)

    def launch(
        self, arrays: Sequence[Array | None], values: Sequence[object], params: Sequence[Parameter], name: str
    ) -> None:
        """Run on these arguments: arrays, and None where the value is a number."""
        pairs = zip(params, arrays, strict=True)
        addresses = {each.name: array.__array_interface__["data"][0] for each, array in pairs if array is not None}
        numbers = {each.name: value for each, value in zip(params, values, strict=False)}
        slots = self.arguments.fill(addresses, numbers, name)
        self.executable.run(slots.buffer_info()[0], self.space.size)


@dataclass(frozen=True)
class DevicePlan:
    """The same for arrays on one device."""

    module: CompiledModule
    arguments: Arguments
    space: Space
    spec: Specialisation  # what source() shows


@dataclass
class ElementwiseCall:
    """The arguments of one call, read and checked for kind.

    arrays: one entry for every parameter, None for numbers and for outputs to allocate. values: the numbers, likewise.
    given: outputs were passed. size: the `size=` argument or -1, or the shape of the space. key: what the plan
    depends on.
    """

    arrays: list[Array | None]
    values: tuple[object, ...]
    dtypes: tuple[DType | None, ...]
    given: bool
    size: int | Shape
    numbers: frozenset[str]
    key: object
