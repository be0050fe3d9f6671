"""The definition of an element-wise kernel: data that every step of a call reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from fusec.arguments.signature import Parameter, Signature, Takes
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Fp
from fusec.base.recent import Recent
from fusec.compiler.pipeline import Source, Specialisation
from fusec.dispatch.plan import ElementwiseCall, Plan
from fusec.frontends.c.definition import Definition

if TYPE_CHECKING:
    from fusec.dispatch.fast_path_device import CachedCall


MAX_PLANS = 256  # combinations of shapes and strides remembered by one kernel


class SpecOptions(TypedDict, total=False):
    """What constructors of kernels hand on."""

    fp: Fp  # "strict" without
    uses_index: bool  # the definition may ask for positions
    # Of element-wise kernels:
    reduce_dims: bool  # axes are merged that all operands walk evenly, unless False
    no_return: bool  # calls return None
    return_tuple: bool  # calls return a tuple even of one output
    # Of kernels along axes:
    elements: frozenset[str]  # outputs that have the shape of the arguments, not of the totals
    in_place: frozenset[tuple[str, str]]  # outputs and inputs that may be the same memory
    once: frozenset[str]  # inputs with one element for each total


class KernelSpec:
    """A definition and a signature, and how calls treat the arguments."""

    takes_outputs = True  # calls may give the outputs after the inputs
    names_output = False  # they may give the only one as out=
    follows_raw = False  # raw arrays have the shape of the iteration space
    checks = ""  # what calls look for, see `fusec.dispatch.checked`

    def __init__(self, definition: Source, signature: Signature, **options: Unpack[SpecOptions]) -> None:
        self.definition, self.signature = definition, signature
        self.name = signature.name
        self.in_params, self.out_params, self.params = signature.inputs, signature.outputs, signature.params
        self.nin, self.nout, self.nargs = len(self.in_params), len(self.out_params), len(self.params)
        self.fp: Fp = options.get("fp", "strict")
        self.uses_index = options.get("uses_index", False)
        self.reduce_dims = options.get("reduce_dims", True)
        self.no_return, self.return_tuple = options.get("no_return", False), options.get("return_tuple", False)
        self.elements, self.in_place = options.get("elements", frozenset()), options.get("in_place", frozenset())
        self.once = options.get("once", frozenset())
        self.device_plans: Recent[object, Any] = Recent(MAX_PLANS)
        self.last: Any = None  # what was called last, which source() shows without types

    def hasten(self, plan: Plan, call: ElementwiseCall, again: bool) -> None:
        """Make later calls of this kind faster; again: an earlier call had these shapes and strides."""

    def repeat(self, args: Sequence[object], ready: CachedCall) -> None:
        """Take the fast path in later calls on a device with arguments like these."""

    @property
    def is_written(self) -> list[bool]:
        """Whether the kernel writes the array of each parameter."""
        return [param.non_const or position >= self.nin for position, param in enumerate(self.params)]

    @property
    def returns(self) -> Literal["outputs", "tuple", "nothing"]:
        """What calls return: several outputs as a tuple, always a tuple, or None."""
        if self.no_return:
            return "nothing"
        return "tuple" if self.return_tuple else "outputs"

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

    def deciding(self, call: ElementwiseCall) -> Mapping[str, object]:
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
