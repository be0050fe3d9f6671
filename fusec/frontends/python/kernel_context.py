"""One kernel being lowered: what all its functions share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager

import numpy as np

from fusec.base.dtypes import BY_NAME as DTYPES
from fusec.base.dtypes import DType
from fusec.base.records import dataclass, field
from fusec.base.source import SourceFile, Span
from fusec.frontends.lowering import fresh, nested
from fusec.frontends.python import syntax as s
from fusec.frontends.python import values as v
from fusec.frontends.python.definition import Capture, FunctionText, PythonDefinition
from fusec.frontends.python.types import BY_NAME, Kind, carrier
from fusec.ir.expr import Const
from fusec.ir.loops import Function

MAX_FUNCTIONS = 500  # instances in one kernel


@dataclass(frozen=True)
class Instance:
    """A device function for certain arguments: its IR, and its results; a tuple goes through a struct."""

    function: Function
    result: tuple[Kind, ...]
    is_tuple: bool


@dataclass(frozen=True)
class Other:
    """The value of a free name that a kernel cannot use; given: "" if the name has no value."""

    given: str
    cure: str
    is_array_class: bool = False  # which may annotate parameters, and says nothing about a dtype


AS_THEY_ARE: dict[str, Callable[..., v.Value | Other]] = {  # captures whose values have their fields
    "module": v.Module, "builtin": v.Builtin, "intrinsic": v.Intrinsic, "none": v.Absent, "other": Other,
}  # fmt: skip


@dataclass
class KernelContext:
    """The functions of a definition, and their instances so far."""

    definition: PythonDefinition
    texts: dict[str, FunctionText] = field(default_factory=dict)
    instances: dict[tuple[object, ...], Instance] = field(default_factory=dict)
    active: list[str] = field(default_factory=list)  # functions being lowered, outermost first
    names: set[str] = field(default_factory=set)  # taken by functions
    nesting: Counter[str] = field(default_factory=Counter)
    reduces: bool = False  # they are a reduction's, whose check looks at its elements before anything else runs
    known: dict[tuple[str, str], v.Value | Other | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.texts.update({each.key: each for each in self.definition.functions})

    @property
    def source(self) -> SourceFile:
        """The text of the kernel itself, to which the lines of the program refer."""
        return self.definition.functions[-1].source

    def tree(self, key: str) -> s.FunctionNode:
        """The syntax tree of a function."""
        return self.texts[key].tree

    def captured(self, key: str, name: str) -> v.Value | Other | None:
        """The value of a free name of a function; None if nothing was found."""
        if (key, name) not in self.known:
            captures = dict(self.texts[key].names)
            self.known[key, name] = value_of(captures[name], name) if name in captures else None
        return self.known[key, name]

    def fresh(self, name: str) -> str:
        """A function name that is not yet taken."""
        return fresh(name, self.names, {})

    def nested(self, what: str, span: Span) -> AbstractContextManager[None]:
        """Count one level of nesting. Raises TooDeep."""
        return nested(self.nesting, what, span)


def value_of(capture: Capture, name: str = "") -> v.Value | Other:
    """The value of a captured constant, type, module or function."""
    match capture:
        case ("python", value, *_):
            return v.literal(value)
        case ("complex", float() as real, float() as imag, *_):
            return v.literal(complex(real, imag))
        case ("numpy", str() as dtype, int() as bits):
            return _numpy(DTYPES[dtype], bits)
        case ("type", str() as kind):
            return v.Type(DTYPES[kind] if kind in DTYPES and kind not in BY_NAME else BY_NAME[kind])
        case ("numpy type", str() as kind):
            return v.Type(DTYPES[kind])
        case ("function", str() as key):
            return v.UserFunction(name, key)
        case ("tuple", items):
            values = [value_of(tuple(item), name) for item in items]
            wrong = next((each for each in values if isinstance(each, Other)), None)
            return wrong or v.Items(tuple(each for each in values if not isinstance(each, Other)))
        case ("array", str() as dtype, shape, str() as text):
            return _array(DTYPES[dtype], tuple(shape), bytes.fromhex(text))
        case ("missing", str() as cure):
            return Other("", cure)
        case (str() as what, *fields) if what in AS_THEY_ARE:
            return AS_THEY_ARE[what](*fields)
    raise AssertionError(f"unknown capture {capture}")


def _numpy(dtype: DType, bits: int) -> v.Scalar:
    return v.Scalar(dtype, v.converted(Const(bits, dtype), carrier(dtype)))


def _array(dtype: DType, shape: tuple[int, ...], data: bytes) -> v.Table:
    """The constants of an array; narrow floats as the floats that they are computed in."""
    wide = carrier(dtype)
    numbers = np.frombuffer(data, dtype.numpy).astype(wide.numpy)
    bits = (int.from_bytes(number.tobytes(), "little") for number in numbers)
    return v.Table(dtype, tuple(Const(each, wide) for each in bits), shape)
