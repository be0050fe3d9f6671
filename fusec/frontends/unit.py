"""One kernel being lowered: what all its functions share."""

from __future__ import annotations

from collections import Counter

from fusec.errors.language import BadDeclaration, NotSupported
from fusec.frontends import syntax as s
from fusec.frontends.c_types import CType
from fusec.frontends.symbols import Symbol
from fusec.ir.expr import Struct
from fusec.ir.loops import Function
from fusec.records import dataclass, field
from fusec.source import SourceFile

MAX_FUNCTIONS = 500  # instantiations in one kernel


@dataclass
class Template:
    """An instantiated function: its IR, and whether calling it changes memory."""

    function: Function
    impure: bool


@dataclass
class Unit:
    """The declarations of a preamble and the functions instantiated so far.

    source: the text that statement lines refer to. single: float literals without suffix are float32.
    names: taken by functions. active: functions being lowered, outermost first. addressed: variables whose address
    may be kept in a pointer, which therefore live in memory.
    """

    source: SourceFile
    single: bool
    types: dict[str, CType]
    globals: dict[str, Symbol] = field(default_factory=dict)
    functions: dict[str, list[s.FunctionDef]] = field(default_factory=dict)
    structs: dict[str, Struct] = field(default_factory=dict)
    refused_structs: dict[str, s.StructDef] = field(default_factory=dict)
    instances: dict[tuple[object, ...], Template] = field(default_factory=dict)
    active: list[tuple[object, ...]] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    addressed: frozenset[str] = frozenset()
    nesting: Counter[str] = field(default_factory=Counter)

    @property
    def emitted(self) -> tuple[Function, ...]:
        """The instantiated functions, callees before callers."""
        return tuple(instance.function for instance in self.instances.values())

    def fresh(self, name: str) -> str:
        """A function name not yet taken."""
        found, count = name, 0
        while found in self.names:  # at most MAX_FUNCTIONS times
            count += 1
            found = f"{name}_{count}"
        self.names.add(found)
        return found

    def declare_function(self, function: s.FunctionDef) -> None:
        """Add a function to the overloads of its name; a mere declaration adds nothing."""
        if function.body is not None:
            self.functions.setdefault(function.name, []).append(function)


def check_struct(struct: s.StructDef) -> None:
    """Refuse what structs of scalars cannot have. Raises NotSupported or BadDeclaration."""
    if struct.methods:
        raise NotSupported("a member function is", "structs hold fields only; write a plain function").at(
            struct.methods[0]
        )
    if not struct.fields:
        raise BadDeclaration(f"struct '{struct.name}' has no fields", "add a field").at(struct.span)
    for kind, field_ in struct.fields:
        if kind.marks or field_.marks or field_.arrays:
            cure = "fields are scalars; keep arrays in local variables beside the struct"
            raise NotSupported(f"the array or pointer field '{field_.name}' is", cure).at(field_.span)
        if field_.value is not None:
            raise NotSupported("a default value of a field is", "assign it where the struct is made").at(field_.span)
