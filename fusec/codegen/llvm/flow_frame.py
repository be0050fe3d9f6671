"""What is known of a function while its text is written: its variables, its local arrays, its open loops."""

from __future__ import annotations

from fusec.base.records import dataclass, field
from fusec.codegen.llvm.divergence import FlowPlan
from fusec.codegen.llvm.values import Operand
from fusec.ir.expr import Type


@dataclass
class VarSlot:
    """A local variable: in stack slots, or a current value. varying: one value for every lane."""

    type: Type
    varying: bool
    slots: tuple[str, ...] = ()
    value: Operand = ()


@dataclass
class Stack:
    """A local array in memory: its address, and whether every lane has its own (element k of lane l at k * W + l)."""

    address: str
    varying: bool


@dataclass
class OpenLoop:
    """A loop being written. alive: slot of the lanes that are in it; current: of those still in this iteration."""

    body: str
    step: str
    exit: str
    alive: str = ""
    current: str = ""


@dataclass
class FlowFrame:
    """A function being written. live: slot of the lanes that have not returned, or empty if all return together."""

    plan: FlowPlan
    end: str
    variables: dict[str, VarSlot] = field(default_factory=dict)
    stacks: dict[str, Stack] = field(default_factory=dict)
    loops: list[OpenLoop] = field(default_factory=list)
    live: str = ""
    result: tuple[str, ...] = ()
