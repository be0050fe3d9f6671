"""The function being lowered: its names, its scopes, its statements so far, and the resolution of its types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from fusec.base.diagnostics import did_you_mean
from fusec.base.dtypes import BOOL, INT64, UINT64, DType, complex_type, signed_of, unsigned_of
from fusec.base.source import Span
from fusec.errors.language import NotConstant, NotSupported, Redeclared, TooDeep, UnknownType
from fusec.frontends.c import literals
from fusec.frontends.c import syntax as s
from fusec.frontends.c.arithmetic import common_choice
from fusec.frontends.c.c_types import NAMED, Auto, CType, PointerTo, RawOf, Void, builtin, show
from fusec.frontends.c.context import TranslationUnit
from fusec.frontends.c.folding import Known, fold
from fusec.frontends.c.sequencing import changes
from fusec.frontends.c.symbols import LocalArrayOf, NamedConstant, RawArray, Symbol, Variable
from fusec.frontends.c.unknown_names import unknown_name
from fusec.frontends.lowering import MAX_DEPTH, MAX_STATEMENTS, StatementBuilder, nested
from fusec.ir.expr import Const, Expr, Pointer, Struct, const, type_of
from fusec.ir.loops import Assign, Declare, Local, Stmt


class SubstitutionError(Exception):
    """A type that does not exist for these template arguments: the overload is not a candidate."""


class FunctionFrame(StatementBuilder):
    """State of one function. types: names of types, innermost scope last; symbols: likewise."""

    def __init__(self, unit: TranslationUnit, taken: set[str]) -> None:
        super().__init__(taken)
        self.unit = unit
        self.types: list[dict[str, CType]] = [{}]
        self.symbols: list[dict[str, Symbol]] = [{}]
        self.prologue: list[Stmt] = []
        self.impure = False
        self.span = Span(unit.source, 0, 0)
        self.extra = 0  # nesting of the IR that `blocks` does not show
        self.known: Known = {}  # locals that are constant

    # --- names and scopes ---

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Forget the names declared inside at the end of the block."""
        self.symbols.append({})
        self.types.append({})
        try:
            yield
        finally:
            self.symbols.pop()
            self.types.pop()

    def bind(self, name: str, symbol: Symbol, span: Span) -> None:
        """Declare a name in the innermost scope. Raises Redeclared."""
        if name in self.symbols[-1]:
            raise Redeclared(name).at(span)
        self.symbols[-1][name] = symbol

    def find(self, name: str) -> Symbol | None:
        """The meaning of a name, from the innermost scope outwards."""
        for scope in reversed(self.symbols):
            if name in scope:
                return scope[name]
        found = self.unit.globals.get(name)
        if found is None and name in literals.CONSTANTS:
            return NamedConstant(literals.constant(name, self.unit.single))
        return found

    def lookup(self, node: s.Identifier) -> Symbol:
        """The meaning of a name. Raises UnknownName."""
        found = self.find(node.name)
        if found is None:
            known = {each for scope in self.symbols for each in scope} | set(self.unit.globals)
            raise unknown_name(node.name, known, node.span)
        return found

    # --- statements ---

    @contextmanager
    def block(self) -> Iterator[list[Stmt]]:
        """Collect statements separately; the list is complete when the block ends. Raises TooDeep."""
        self.blocks.append([])
        try:
            yield self.blocks[-1]
        finally:
            collected = self.blocks.pop()
        if collected and len(self.blocks) + self.extra > MAX_STATEMENTS:
            raise TooDeep(MAX_STATEMENTS, "statements").at(self.span)

    @contextmanager
    def nested(self, span: Span, what: str = "expressions", limit: int = MAX_DEPTH) -> Iterator[None]:
        """Count one level of nesting. Raises TooDeep."""
        with nested(self.unit.nesting, what, span, limit):  # shared by all functions: calls are lowered in callers
            yield

    def at(self, node: s.CNode) -> int:
        """The line of a node, 0 if it is not in the operation's text."""
        return node.span.line if node.span.file is self.unit.source else 0

    def variable(self, type_: DType | Struct | Pointer, name: str = "_t") -> Local:
        """A new local, initially zero."""
        local = Local(self.fresh(name), type_)
        self.emit(Declare(local.name, type_, line=self.line))
        return local

    def set(self, local: Local, value: Expr) -> None:
        """Assign to a local."""
        self.emit(Assign(local.name, value, line=self.line))

    @property
    def mark(self) -> int:
        """The present end of the innermost block; see `kept`."""
        return len(self.blocks[-1])

    def kept(self, values: Sequence[Expr], mark: int, for_good: bool = False) -> list[Expr]:
        """Values that were lowered before a mark, as they were there: what statements since then change is named.

        for_good: once there is any change, name all values but constants, so that no later one matters either.
        """
        block = self.blocks[-1]
        found = changes(block[mark:])
        if not found:
            return list(values)
        names: list[Stmt] = []
        out: list[Expr] = []
        for value in values:
            if (for_good and not isinstance(value, Const)) or found.affect(value):
                local = Local(self.fresh("_t"), type_of(value))
                names.append(Declare(local.name, local.type, value, line=self.line))
                value = local
            out.append(value)
        block[mark:mark] = names
        return out

    # --- types ---

    def resolve(self, node: s.Qualified) -> CType:
        """The written type. Raises UnknownType or NotSupported."""
        base = self._base(node.base)
        if not node.marks or (node.marks == "&" and isinstance(base, RawOf)):
            return base
        if node.marks not in ("*", "&"):
            raise NotSupported("a pointer to a pointer is", "use one array and compute the index").at(node.span)
        if isinstance(base, (PointerTo, Void, Auto, RawOf)):
            if node.marks == "&" and isinstance(base, Auto):
                return base
            raise NotSupported(f"a pointer or reference to {show(base)} is", "name the element's type").at(node.span)
        return PointerTo(base, node.const, node.marks == "&")

    def scalar(self, node: s.Qualified) -> DType:
        """The written type, which must be a scalar. Raises UnknownType."""
        found = self.resolve(node)
        if not isinstance(found, DType):
            raise UnknownType(show(found), "a scalar type is needed here").at(node.span)
        return found

    def _base(self, node: s.TypeName | s.Decltype) -> CType:
        if isinstance(node, s.Decltype):
            return self._decltype(node)
        if node.args or node.member:
            return self._applied(node)
        for scope in reversed(self.types):
            if node.name in scope:
                return scope[node.name]
        if node.name in self.unit.refused_structs:
            raise self.unit.refused_structs[node.name]
        found = self.unit.types.get(node.name) or NAMED.get(node.name) or builtin(node.name)
        if found is None:
            known = did_you_mean(node.name, {*self.unit.types, *NAMED})
            raise UnknownType(node.name, known or "C's types, NumPy's names and the placeholders are known").at(
                node.span
            )
        return found

    def _decltype(self, node: s.Decltype) -> CType:
        if node.member:
            if node.member not in ("index_t", "value_type"):
                raise UnknownType(node.member, "index_t and value_type are known").at(node.span)
            if isinstance(node.value, s.Identifier):
                found = self.lookup(node.value)
                if isinstance(found, RawArray):
                    return INT64 if node.member == "index_t" else found.dtype
            return INT64
        with self.block():  # unevaluated
            return self.type_of_node(node.value)

    def type_of_node(self, node: s.Expression) -> CType:
        """The type of an expression that is not evaluated."""
        if isinstance(node, s.Identifier):
            found = self.lookup(node)
            if isinstance(found, Variable):
                return found.type
            if isinstance(found, LocalArrayOf):
                return PointerTo(found.element, bool(found.const))
        given = type_of(self.value(node))
        assert not isinstance(given, Pointer), "value() gives scalars and structs"
        return given

    def value(self, node: s.Expression) -> Expr:
        """The value of an expression; the layers above define it."""
        raise NotImplementedError

    def _applied(self, node: s.TypeName) -> CType:
        """A type with arguments: complex<T>, conditional<...>::type and other traits."""
        args = [self.type_argument(arg) for arg in node.args]
        if node.name in self.unit.templates and not node.member:
            return self.instantiated(node, args)
        name = node.name.removesuffix("_t")
        types = [arg for arg in args if isinstance(arg, DType)]
        match name, args:
            case "complex", [DType() as part] if part.is_float and part.bits >= 32:
                return complex_type(part)
            case "conditional", [Const() as test, a, b] if not isinstance(a, Const) and not isinstance(b, Const):
                return a if test.bits else b
            case "enable_if", [Const() as test, *rest]:
                if not test.bits:
                    raise SubstitutionError
                return rest[0] if rest and not isinstance(rest[0], Const) else Void()
            case "make_unsigned" | "make_signed", [DType() as given] if given.is_integer:
                return unsigned_of(given.bits) if name == "make_unsigned" else signed_of(given.bits)
            case "remove_const" | "remove_cv" | "remove_reference" | "decay", [DType() as given]:
                return given
            case "common_type", [DType(), DType()]:
                return common_choice(*types)
        shown = ", ".join(str(arg.value) if isinstance(arg, Const) else show(arg) for arg in args)
        raise UnknownType(f"{node.name}<{shown}>", "complex<float>, complex<double> and conditional<...> are known").at(
            node.span
        )

    def instantiated(self, node: s.TypeName, args: list[CType | Const]) -> Struct:
        """The struct of a template; the layer of structs makes it."""
        raise NotImplementedError

    def converted(self, value: Expr, type_: DType | Struct, span: Span) -> Expr:
        """A value as another type; the layer of storage converts it."""
        raise NotImplementedError

    def type_argument(self, node: s.TypeArg) -> CType | Const:
        """An argument of a template: a type, or a constant."""
        if isinstance(node, s.Qualified):
            return self.resolve(node)
        return self.constant(node, "a template argument")

    # --- constants ---

    def constant(self, node: s.Expression, what: str) -> Const:
        """The value of an integer expression that must be known now. Raises NotConstant."""
        with self.block() as named:
            value = self.value(node)
        found = self.folded(value, named)
        if found is None or not (found.type.is_integer or found.type == BOOL):
            raise NotConstant(what).at(node.span)
        return found

    def folded(self, value: Expr, named: Sequence[Stmt] = ()) -> Const | None:
        """The constant that a value is, None if it is none. named: statements that declare locals of it."""
        return fold(value, self.known, list(named))

    def sizeof(self, node: s.Sizeof) -> Const:
        """``sizeof``, a size_t."""
        if isinstance(node.operand, s.Qualified):
            found = self.resolve(node.operand)
        elif isinstance(node.operand, s.Identifier) and isinstance(array := self.find(node.operand.name), LocalArrayOf):
            size = array.element.nbytes
            for length in array.lengths:
                size *= length
            return const(size, UINT64)
        else:
            with self.block():
                found = self.type_of_node(node.operand)
        if not isinstance(found, DType):
            raise NotSupported(f"sizeof of {show(found)} is", "only scalars have a size").at(node.span)
        return const(found.nbytes, UINT64)

    def trait(self, node: s.Trait) -> Const:
        """A fact about types. Raises UnknownType if there is none with that name."""
        args = [self.type_argument(arg) for arg in node.args]
        match node.name, args:
            case "is_same", [a, b]:
                return const(a == b, BOOL)
            case "numeric_limits", [DType() as dtype]:
                found = literals.limit(dtype, node.member)
                if found is not None:
                    return found
            case _, [DType() as dtype] if node.name in _PREDICATES:
                return const(_PREDICATES[node.name](dtype), BOOL)
        raise UnknownType(f"{node.name}<...>::{node.member}", "is this trait spelled right?").at(node.span)


_PREDICATES: dict[str, Callable[[DType], bool]] = {
    "is_floating_point": lambda dtype: dtype.is_float,
    "is_integral": lambda dtype: dtype.is_integer or dtype == BOOL,
    "is_signed": lambda dtype: dtype.kind in ("signed", "float"),
    "is_unsigned": lambda dtype: dtype.kind in ("unsigned", "bool"),
    "is_arithmetic": lambda dtype: not dtype.is_complex,
    "is_complex": lambda dtype: dtype.is_complex,
}
