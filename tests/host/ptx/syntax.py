"""The parts of a PTX module as values: operands, instructions, variables, functions."""

from dataclasses import dataclass, field

_FUNDAMENTAL = {"b": (8, 16, 32, 64, 128), "u": (8, 16, 32, 64), "s": (8, 16, 32, 64), "f": (16, 32, 64)}
WIDTHS = {f"{kind}{bits}": bits // 8 for kind, widths in _FUNDAMENTAL.items() for bits in widths}  # in bytes
WIDTHS |= {"bf16": 2, "f16x2": 4, "bf16x2": 4, "f32x2": 8, "e4m3x2": 2, "e5m2x2": 2, "pred": 1}


@dataclass(frozen=True)
class Register:
    """A virtual register, by its unique name in the function, or a special one such as ``%tid.x``."""

    name: str
    negated: bool = False


@dataclass(frozen=True)
class Literal:
    """A number as written."""

    text: str


@dataclass(frozen=True)
class Symbol:
    """The name of a variable, function or label."""

    name: str


@dataclass(frozen=True)
class Address:
    """A place in memory: a register, a variable or a number, and an offset in bytes."""

    base: "Register | Literal | Symbol"
    offset: int = 0


@dataclass(frozen=True)
class Vector:
    """Operands in braces; also the results ``p|q`` of setp and shfl, and the lists of a call in parentheses."""

    items: "tuple[Operand, ...]"


Operand = Register | Literal | Symbol | Address | Vector


@dataclass(frozen=True)
class Instruction:
    """One instruction. opcode: its parts between the dots. guard: the predicate that it runs under."""

    opcode: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Register | None
    line: int
    text: str


@dataclass(frozen=True)
class Variable:
    """A declared variable. space: param, local, shared, global or const; initial: its first bytes."""

    name: str
    space: str
    type: str
    nbytes: int
    align: int
    initial: bytes = b""
    is_extern: bool = False


@dataclass
class Function:
    """A function or an entry, as parsed."""

    name: str
    is_entry: bool
    params: list[Variable]
    returns: list[Variable]
    registers: dict[str, str] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    body: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    tables: dict[str, list[str]] = field(default_factory=dict)
    threads: int | None = None  # the most that .maxntid allows


@dataclass
class Module:
    """A PTX module. state: the bytes of its global and constant variables, which launches change."""

    functions: dict[str, Function]
    variables: dict[str, Variable]
    state: dict[str, bytearray]
    code: dict[str, object] = field(default_factory=dict)  # functions made ready to run
