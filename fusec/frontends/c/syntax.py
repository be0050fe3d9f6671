"""The syntax tree of the kernel language: what was written, before any type is known."""

from __future__ import annotations

from fusec.base.records import dataclass
from fusec.base.source import Span


@dataclass(frozen=True, slots=True)
class CNode:
    """Base of the tree; `span` is the place in the user's text."""

    span: Span


# --- types ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TypeName(CNode):
    """A type by name, with arguments in angle brackets and a member such as ``::type``."""

    name: str
    args: tuple[TypeArg, ...] = ()
    member: str = ""


@dataclass(frozen=True, slots=True)
class Decltype(CNode):
    """The type of an expression, or with a member (CuPy's ``decltype(a)::index_t``) a type that it names."""

    value: Expression
    member: str


@dataclass(frozen=True, slots=True)
class Qualified(CNode):
    """A type with its qualifiers and the stars and ampersands after it (``"*"`` and ``"&"``)."""

    base: TypeName | Decltype
    qualifiers: frozenset[str]
    marks: str = ""

    @property
    def const(self) -> bool:
        """True for const and its relatives."""
        return not self.qualifiers.isdisjoint(("const", "constexpr", "__constant__"))


# --- expressions ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Identifier(CNode):
    """A name."""

    name: str


@dataclass(frozen=True, slots=True)
class TemplateId(CNode):
    """A function template with its arguments named: ``f<T>``."""

    name: str
    args: tuple[TypeArg, ...]


@dataclass(frozen=True, slots=True)
class Trait(CNode):
    """A fact about types: ``is_same<A, B>::value``, ``numeric_limits<T>::max``."""

    name: str
    args: tuple[TypeArg, ...]
    member: str


@dataclass(frozen=True, slots=True)
class Numeral(CNode):
    """An integer or floating literal, as written."""

    text: str


@dataclass(frozen=True, slots=True)
class Character(CNode):
    """A character literal, as written."""

    text: str


@dataclass(frozen=True, slots=True)
class StringLit(CNode):
    """A string literal, as written."""

    text: str


@dataclass(frozen=True, slots=True)
class Word(CNode):
    """``true``, ``false`` or ``nullptr``."""

    word: str


@dataclass(frozen=True, slots=True)
class UnaryOp(CNode):
    """A prefix operator: ``- + ! ~ * & ++ --``."""

    op: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Postfix(CNode):
    """``x++`` or ``x--``."""

    op: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class BinaryOp(CNode):
    """A binary operator, assignments excepted. op_span: the operator itself."""

    op: str
    left: Expression
    right: Expression
    op_span: Span


@dataclass(frozen=True, slots=True)
class Assignment(CNode):
    """``target = value`` (op is "") or ``target op= value``."""

    op: str
    target: Expression
    value: Expression | Braced


@dataclass(frozen=True, slots=True)
class Ternary(CNode):
    """``condition ? then : orelse``."""

    condition: Expression
    then: Expression
    orelse: Expression


@dataclass(frozen=True, slots=True)
class Comma(CNode):
    """``first, second``."""

    first: Expression
    second: Expression


@dataclass(frozen=True, slots=True)
class Cast(CNode):
    """``(T)x`` and ``static_cast<T>(x)``."""

    type: Qualified
    value: Expression


@dataclass(frozen=True, slots=True)
class Construct(CNode):
    """``T(a, b)`` or ``T{a, b}``."""

    type: TypeName | Decltype
    args: tuple[Expression | Braced, ...]


@dataclass(frozen=True, slots=True)
class CallExpr(CNode):
    """``callee(a, b)``."""

    callee: Expression
    args: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Subscript(CNode):
    """``value[index]``."""

    value: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class MemberExpr(CNode):
    """``value.name`` or ``value->name``."""

    value: Expression
    name: str
    arrow: bool


@dataclass(frozen=True, slots=True)
class Sizeof(CNode):
    """``sizeof(T)`` or ``sizeof x``."""

    operand: Qualified | Expression


@dataclass(frozen=True, slots=True)
class Braced(CNode):
    """``{a, b}``, in initialisers."""

    elements: tuple[Expression | Braced, ...]


Expression = (
    Identifier | TemplateId | Trait | Numeral | Character | StringLit | Word | UnaryOp | Postfix | BinaryOp | Assignment
    | Ternary | Comma | Cast | Construct | CallExpr | Subscript | MemberExpr | Sizeof
)  # fmt: skip
TypeArg = Qualified | Expression


# --- statements -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Declarator(CNode):
    """One declared name. arrays: a length, or None for ``[]``, for every pair of brackets.

    value: the initialiser; args: those of ``T x(a, b)`` instead.
    """

    name: str
    marks: str
    arrays: tuple[Expression | None, ...]
    value: Expression | Braced | None = None
    args: tuple[Expression, ...] | None = None


@dataclass(frozen=True, slots=True)
class Declaration(CNode):
    """``T a = 1, b;``."""

    type: Qualified
    declarators: tuple[Declarator, ...]


@dataclass(frozen=True, slots=True)
class Alias(CNode):
    """``typedef T name;`` or ``using name = T;``."""

    name: str
    type: Qualified


@dataclass(frozen=True, slots=True)
class ExprStmt(CNode):
    """An expression as a statement."""

    value: Expression


@dataclass(frozen=True, slots=True)
class BlockStmt(CNode):
    """Statements with a scope of their own."""

    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class IfStmt(CNode):
    """``if (condition) then else orelse``."""

    condition: Expression
    then: Statement
    orelse: Statement | None


@dataclass(frozen=True, slots=True)
class LoopStmt(CNode):
    """``for``, ``while`` and, with test_first False, ``do``. No condition: for ever."""

    init: Statement | None
    condition: Expression | None
    step: Expression | None
    body: Statement
    test_first: bool = True


@dataclass(frozen=True, slots=True)
class RangeLoop(CNode):
    """``for (T name : values) body``; the span is that of the name."""

    type: Qualified
    name: str
    values: Expression | Braced
    body: Statement


@dataclass(frozen=True, slots=True)
class Case(CNode):
    """A label of a switch; value None is ``default``."""

    value: Expression | None


@dataclass(frozen=True, slots=True)
class Switch(CNode):
    """``switch (value) { items }``."""

    value: Expression
    items: tuple[Case | Statement, ...]


@dataclass(frozen=True, slots=True)
class Jump(CNode):
    """``break`` or ``continue``."""

    word: str


@dataclass(frozen=True, slots=True)
class ReturnStmt(CNode):
    """``return value;``."""

    value: Expression | Braced | None


@dataclass(frozen=True, slots=True)
class Empty(CNode):
    """``;``."""


@dataclass(frozen=True, slots=True)
class EnumDef(CNode):
    """An enumeration. name: "" if it has none. values: names, their places, and values where they are given.

    base: the type of the values, None for int. scoped: ``enum class``, whose values are written ``name::value``.
    """

    name: str
    values: tuple[tuple[str, Span, Expression | None], ...]
    base: Qualified | None
    scoped: bool


# --- preambles --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TemplateParam(CNode):
    """A template parameter: a type (`type` None) or a value of that type."""

    name: str
    type: Qualified | None
    default: TypeArg | None


@dataclass(frozen=True, slots=True)
class FunctionParam(CNode):
    """A function parameter; an array in brackets counts as a pointer. name: "" if it has none."""

    name: str
    type: Qualified


@dataclass(frozen=True, slots=True)
class Initial(CNode):
    """What a constructor gives a field before its body: ``name(a, b)`` or ``name{a, b}``."""

    name: str
    args: tuple[Expression | Braced, ...]


@dataclass(frozen=True, slots=True)
class FunctionDef(CNode):
    """A device function; body None is a mere declaration. templates: None if it is no template.

    initials: those of a constructor, None for all other functions. const: a method that leaves its struct as it is.
    """

    name: str
    result: Qualified
    params: tuple[FunctionParam, ...]
    body: BlockStmt | None
    templates: tuple[TemplateParam, ...] | None = None
    initials: tuple[Initial, ...] | None = None
    const: bool = False


@dataclass(frozen=True, slots=True)
class Fields(CNode):
    """Fields of one type, or constants of a struct if that is static; and the struct that is defined with them."""

    type: Qualified
    declarators: tuple[Declarator, ...]
    defines: StructDef | None = None


@dataclass(frozen=True, slots=True)
class StructDef(CNode):
    """A struct, with its members in order. templates: None if it is no template."""

    name: str
    members: tuple[Fields | FunctionDef | StructDef | EnumDef | Alias, ...]
    templates: tuple[TemplateParam, ...] | None = None


Statement = (
    Declaration
    | Alias
    | ExprStmt
    | BlockStmt
    | IfStmt
    | LoopStmt
    | RangeLoop
    | Switch
    | Jump
    | ReturnStmt
    | Empty
    | StructDef
    | EnumDef
)

External = FunctionDef | StructDef | EnumDef | Alias | Declaration | Empty
