"""The syntax tree of the kernel language: what was written, before any type is known."""

from __future__ import annotations

from fusec.base.source import Span
from fusec.frontends.syntax import *  # noqa: F403 - the tree is made of these nodes and of those that all languages share
from fusec.frontends.syntax import Body, Expression, Node, Pass, Statement

# --- types ------------------------------------------------------------------------------------------------------


class TypeName(Node):
    """A type by name, with arguments in angle brackets and a member such as ``::type``."""

    name: str
    args: tuple[TypeArg, ...] = ()
    member: str = ""


class Decltype(Node):
    """The type of an expression, or with a member (CuPy's ``decltype(a)::index_t``) a type that it names."""

    value: Expression
    member: str


class Qualified(Node):
    """A type with its qualifiers."""

    base: TypeName | Decltype
    qualifiers: frozenset[str]
    marks: str = ""  # the stars and ampersands after it

    @property
    def const(self) -> bool:
        """True for const and its relatives."""
        return not self.qualifiers.isdisjoint(("const", "constexpr", "__constant__"))


# --- expressions ------------------------------------------------------------------------------------------------


class TemplateId(Expression):
    """A function template with its arguments named: ``f<T>``."""

    name: str
    args: tuple[TypeArg, ...]


class Trait(Expression):
    """A fact about types: ``is_same<A, B>::value``, ``numeric_limits<T>::max``."""

    name: str
    args: tuple[TypeArg, ...]
    member: str


class Numeral(Expression):
    """An integer or floating literal, as written."""

    text: str


class Character(Expression):
    """A character literal, as written."""

    text: str


class Word(Expression):
    """``true``, ``false`` or ``nullptr``."""

    word: str


class Postfix(Expression):
    """``x++`` or ``x--``."""

    op: str
    operand: Expression


class Assignment(Expression):
    """``target = value`` (op is "") or ``target op= value``."""

    op: str
    target: Expression
    value: Expression


class Comma(Expression):
    """``first, second``."""

    first: Expression
    second: Expression


class Cast(Expression):
    """``(T)x`` and ``static_cast<T>(x)``."""

    type: Qualified
    value: Expression


class Construct(Expression):
    """``T(a, b)`` or ``T{a, b}``."""

    type: TypeName | Decltype
    args: tuple[Expression, ...]


class Sizeof(Expression):
    """``sizeof(T)`` or ``sizeof x``."""

    operand: Qualified | Expression


class Braced(Expression):
    """``{a, b}``, in initialisers."""

    elements: tuple[Expression, ...]


TypeArg = Qualified | Expression


# --- statements -------------------------------------------------------------------------------------------------


class Declarator(Node):
    """One declared name."""

    name: str
    marks: str  # the stars and ampersands before it
    arrays: tuple[Expression | None, ...]  # for every pair of brackets the length, None for ``[]``
    value: Expression | None = None  # the initialiser
    args: tuple[Expression, ...] | None = None  # those of ``T x(a, b)`` instead


class Declaration(Statement):
    """``T a = 1, b;``."""

    type: Qualified
    declarators: tuple[Declarator, ...]


class Alias(Statement):
    """``typedef T name;`` or ``using name = T;``."""

    name: str
    type: Qualified


class BlockStmt(Statement):
    """Statements with a scope of their own."""

    body: Body


class LoopStmt(Statement):
    """``for``, ``while`` and ``do``."""

    init: Statement | None
    condition: Expression | None  # None: for ever
    step: Expression | None
    body: Body
    test_first: bool = True  # False for ``do``


class RangeLoop(Statement):
    """``for (T name : values) body``; the span is that of the name."""

    type: Qualified
    name: str
    values: Expression
    body: Body


class Case(Statement):
    """A label of a switch."""

    value: Expression | None  # None for ``default``


class Switch(Statement):
    """``switch (value) { items }``."""

    value: Expression
    items: Body


class EnumDef(Statement):
    """An enumeration."""

    name: str  # "" if it has none
    values: tuple[tuple[str, Span, Expression | None], ...]  # names, their places, and values where they are given
    base: Qualified | None  # the type of the values, None for int
    scoped: bool  # ``enum class``, whose values are written ``name::value``


# --- preambles --------------------------------------------------------------------------------------------------


class TemplateParam(Node):
    """A template parameter: a type, or a value."""

    name: str
    type: Qualified | None  # of the value; None for a type
    default: TypeArg | None


class FunctionParam(Node):
    """A function parameter; an array in brackets counts as a pointer."""

    name: str  # "" if it has none
    type: Qualified


class Initial(Node):
    """What a constructor gives a field before its body: ``name(a, b)`` or ``name{a, b}``."""

    name: str
    args: tuple[Expression, ...]


class FunctionDef(Node):
    """A device function."""

    name: str
    result: Qualified
    params: tuple[FunctionParam, ...]
    body: BlockStmt | None  # None for a mere declaration
    templates: tuple[TemplateParam, ...] | None = None  # None if it is no template
    initials: tuple[Initial, ...] | None = None  # those of a constructor, None for all other functions
    const: bool = False  # a method that leaves its struct as it is


class Fields(Node):
    """Fields of one type, or constants of a struct if that is static."""

    type: Qualified
    declarators: tuple[Declarator, ...]
    defines: StructDef | None = None  # the struct that is defined with them


class StructDef(Statement):
    """A struct, with its members in order."""

    name: str
    members: tuple[Fields | FunctionDef | StructDef | EnumDef | Alias, ...]
    templates: tuple[TemplateParam, ...] | None = None  # None if it is no template


External = FunctionDef | StructDef | EnumDef | Alias | Declaration | Pass
