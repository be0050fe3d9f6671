"""The meaning of names and symbols in the IR's text, as its printer and the tests' parser both track it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fusec.base.dtypes import INT64, DType
from fusec.base.ops import TABLE, result_type
from fusec.base.records import dataclass, field
from fusec.ir import loops as ir
from fusec.ir.expr import Apply, Const, Expr, Lookup, Pointer, Struct, Type, scalar_type, type_of
from fusec.ir.graph import Count, Input, Neighbour, Position, Reduce, Taken, Within

KEYWORDS = frozenset(
    "struct function kernel graph let array store atomic do if else while do_while step break continue return "
    "shuffle barrier shared "
    "call make field element offset load lookup convert bitcast position neighbour within taken "
    "true false const local raw read written _".split()
)


@dataclass
class NameTable:
    """The meaning of names at a point of a function, updated statement by statement."""

    functions: Mapping[str, ir.Function] = field(default_factory=dict)
    locals: dict[str, Type] = field(default_factory=dict)
    arrays: dict[str, Pointer] = field(default_factory=dict)
    params: dict[str, ir.ArrayParam] = field(default_factory=dict)
    inputs: dict[str, Input] = field(default_factory=dict)

    @classmethod
    def of_kernel(cls, params: Iterable[ir.Param], functions: Mapping[str, ir.Function]) -> NameTable:
        """The names at the start of a kernel."""
        names = cls(functions)
        for param in params:
            if isinstance(param, ir.ScalarParam):
                names.locals[param.name] = param.dtype
            else:
                names.params[param.name] = param
        return names

    def declare(self, stmt: ir.Stmt) -> None:
        """Declare the names of a statement."""
        if isinstance(stmt, ir.Declare):
            self.locals[stmt.name] = stmt.type
        elif isinstance(stmt, ir.DeclareArray):
            self.arrays[stmt.name] = Pointer(stmt.element, stmt.space)


def default_type(expr: Expr, names: NameTable) -> Type | None:
    """The type of an expression whose text does not state one, or None if the text must state it."""
    match expr:
        case Const() | ir.Make() | Input():
            return expr.type
        case Lookup(values):
            return values[0].type
        case Apply(op, args):
            row = TABLE.get(op)
            if row is None or not args or not all(isinstance(type_of(arg), DType) for arg in args):
                return None
            return result_type(row, tuple(map(scalar_type, args)), expr.type)
        case ir.Local(name):
            return names.locals.get(name)
        case ir.Element(name) | ir.At(name) | ir.Moved(name):
            return Pointer(names.params[name].dtype, "global") if name in names.params else None
        case ir.LocalArray(name):
            return names.arrays.get(name)
        case Reduce(_, value):
            return type_of(value)
        case Count() | Position() | Neighbour() | Within():
            return INT64
        case Taken(array):
            return type_of(array)
        case ir.Offset(pointer):
            return type_of(pointer)
        case ir.Load(pointer):
            kind = type_of(pointer)
            return kind.element if isinstance(kind, Pointer) else None
        case ir.Query():
            return INT64
        case ir.Call(name):
            return names.functions[name].result if name in names.functions else None
        case ir.Field(value, name):
            kind = type_of(value)
            return dict(kind.fields).get(name) if isinstance(kind, Struct) else None
        case _:
            return None
