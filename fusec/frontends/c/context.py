"""The state of one kernel's lowering, which all its functions share."""

from __future__ import annotations

from collections import Counter

from fusec.base.dtypes import DType
from fusec.base.records import dataclass, field
from fusec.base.source import SourceFile, Span
from fusec.errors.base import FusecError
from fusec.frontends.c import syntax as s
from fusec.frontends.c.c_types import CType, RawOf
from fusec.frontends.c.symbols import Address, FieldPlace, Place, RawArray, StructAddress, Symbol, Variable
from fusec.frontends.lowering import fresh
from fusec.ir.expr import Const, Expr, Struct, Type, type_of
from fusec.ir.loops import Function

Bindings = dict[str, CType | Const]  # template parameters
MAX_FUNCTIONS = 500  # instantiations in one kernel


@dataclass(frozen=True)
class Member:
    """A field as written."""

    name: str
    type: DType | Struct
    parts: tuple[str, ...] = ()  # the fields of the IR that hold it
    default: s.Expression | None = None  # its initial value


@dataclass(eq=False)
class Record:
    """A struct as written."""

    struct: Struct
    members: dict[str, Member]
    types: dict[str, CType] = field(default_factory=dict)  # declared inside, with the struct itself
    values: dict[str, Const] = field(default_factory=dict)  # likewise
    constructors: list[s.FunctionDef] = field(default_factory=list)
    methods: dict[str, list[s.FunctionDef]] = field(default_factory=dict)  # with the struct as first parameter
    statics: dict[str, list[s.FunctionDef]] = field(default_factory=dict)
    template: str = ""  # the template that it is an instance of, "" for none
    args: tuple[CType | Const, ...] = ()  # of the template
    bindings: Bindings = field(default_factory=dict)  # of the template's parameters


@dataclass
class Template:
    """An instantiated function."""

    function: Function
    impure: bool  # calling it changes memory


@dataclass(frozen=True)
class CallOperand:
    """An argument: a value, a raw array, or a place."""

    value: Expr | Place | RawArray
    pointer: bool  # a place is passed by address, else by reference
    span: Span

    @property
    def type(self) -> Type | RawOf:
        """The type of the value, or of the contents of the place."""
        match self.value:
            case Address(element=element):
                return element
            case Variable(type=type_) | FieldPlace(type=type_) | StructAddress(type=type_):
                return type_
            case RawArray(name=name):
                return RawOf(name)
            case value:
                return type_of(value)


@dataclass(frozen=True)
class Candidate:
    """A candidate overload."""

    function: s.FunctionDef
    bindings: Bindings  # of its template parameters
    params: tuple[CType, ...]
    cost: int  # its distance from the call


@dataclass
class TranslationUnit:
    """The declarations of a preamble and the functions instantiated so far."""

    source: SourceFile  # the text that statement lines refer to
    single: bool  # float literals without suffix are float32
    types: dict[str, CType]
    globals: dict[str, Symbol] = field(default_factory=dict)
    functions: dict[str, list[s.FunctionDef]] = field(default_factory=dict)
    templates: dict[str, s.StructDef] = field(default_factory=dict)  # of structs
    structs: dict[tuple[object, ...], Struct] = field(default_factory=dict)  # instances of these, by name and arguments
    records: dict[Struct, Record] = field(default_factory=dict)
    owners: dict[int, Record] = field(default_factory=dict)  # the structs that functions are members of, by identity
    refused_structs: dict[str, FusecError] = field(default_factory=dict)  # what is wrong with them
    instances: dict[tuple[object, ...], Template] = field(default_factory=dict)
    active: list[tuple[object, ...]] = field(default_factory=list)  # functions being lowered, outermost first
    names: set[str] = field(default_factory=set)  # taken by functions
    addressed: frozenset[str] = frozenset()  # variables whose address a pointer may keep: they live in memory
    nesting: Counter[str] = field(default_factory=Counter)

    @property
    def emitted(self) -> tuple[Function, ...]:
        """The instantiated functions, callees before callers."""
        return tuple(instance.function for instance in self.instances.values())

    def record(self, struct: Struct) -> Record:
        """The facts about a struct beside its fields; CUDA's vector types have no others."""
        if struct not in self.records:
            self.records[struct] = Record(struct, {name: Member(name, dtype, (name,)) for name, dtype in struct.fields})
        return self.records[struct]

    def fresh(self, name: str) -> str:
        """A function name that is not yet taken."""
        return fresh(name, self.names, {})

    def declare_function(self, function: s.FunctionDef) -> None:
        """Add a function to the overloads of its name; a mere declaration adds nothing."""
        if function.body is not None:
            self.functions.setdefault(function.name, []).append(function)
