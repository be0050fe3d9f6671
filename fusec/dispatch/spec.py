"""The definition of an element-wise kernel: data that every step of a call reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from fusec.arguments.signature import Parameter, Signature, Takes
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Fp
from fusec.base.recent import Recent
from fusec.compiler.pipeline import Source, Specialisation
from fusec.dispatch.plan import Call, DevicePlan, Plan
from fusec.frontends.c.definition import Definition

if TYPE_CHECKING:
    from fusec.dispatch.fast_path_device import Ready
    from fusec.runtime import cuda


MAX_PLANS = 256  # combinations of shapes and strides remembered by one kernel


class KernelSpec:
    """A definition and a signature, and how calls treat the arguments."""

    takes_outputs = True  # calls may give the outputs after the inputs
    names_output = False  # they may give the only one as out=
    follows_raw = False  # raw arrays have the shape of the iteration space

    def __init__(
        self,
        definition: Source,
        signature: Signature,
        *,
        reduce_dims: bool = True,
        no_return: bool = False,
        return_tuple: bool = False,
        uses_index: bool = False,
        fp: Fp = "strict",
    ) -> None:
        self.definition, self.signature = definition, signature
        self.name = signature.name
        self.in_params, self.out_params = signature.inputs, signature.outputs
        self.params = signature.params
        self.nin, self.nout, self.nargs = len(self.in_params), len(self.out_params), len(self.params)
        self.reduce_dims = reduce_dims  # axes are merged that all operands walk evenly
        self.no_return = no_return  # calls return None
        self.return_tuple = return_tuple  # calls return a tuple even of one output
        self.uses_index = uses_index  # the definition may ask for the position of the element
        self.fp = fp
        self.device_plans: Recent[object, DevicePlan] = Recent(MAX_PLANS)
        self.last: Specialisation | None = None  # what was called last, which source() shows without types

    def hasten(self, plan: Plan, call: Call, again: bool) -> None:
        """Make later calls of this kind faster; again: an earlier call had these shapes and strides."""

    def repeat(self, args: Sequence[object], device: int, source: cuda.ArrayLibrary, ready: Ready) -> None:
        """Take the fast path in later calls on a device with arguments like these."""

    def remember(self, spec: Specialisation) -> None:
        """Record the last call: source() without types shows it."""
        self.last = spec

    def converts(self, name: str, types: Mapping[str, DType]) -> bool:
        """True if the parameter takes any number that converts, False if the type of the number counts."""
        del name, types
        return True

    def takes(self, param: Parameter) -> Takes:
        """Whose numbers a call like this one may have for a parameter."""
        del param
        return "any"

    def deciding(self, call: Call) -> Mapping[str, object]:
        """The numbers of a call that determine its number of elements."""
        del call
        return {}

    def binds_outputs(self, types: Mapping[str, DType], numbers: frozenset[str]) -> bool:
        """True if input arrays alone fix the dtypes of all outputs; types: of a call; numbers: passed by value."""
        del types
        fixed = {param.type_name for param in self.in_params if param.name not in numbers}
        return all(param.dtype is not None or param.type_name in fixed for param in self.out_params)

    @staticmethod
    @cache
    def copier() -> KernelSpec:
        """A kernel that copies an array."""
        source, target = Parameter("x", "T", None), Parameter("y", "T", None)
        return KernelSpec(Definition("T x", "T y", "y = x", "copy"), Signature("copy", (source,), (target,)))
