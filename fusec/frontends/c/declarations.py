"""Declarations: variables, arrays, pointers, references and constants, in functions and in preambles."""

from __future__ import annotations

from fusec.base.diagnostics import counted
from fusec.base.dtypes import DType
from fusec.errors.language import BadDeclaration, NotSupported
from fusec.frontends.c import symbols as sym
from fusec.frontends.c import syntax as s
from fusec.frontends.c.c_types import Auto, CType, PointerTo, RawOf, Void, show
from fusec.frontends.c.expressions import BracedValues, ExpressionLowering
from fusec.frontends.c.folding import fold
from fusec.frontends.c.frame import FunctionFrame
from fusec.frontends.c.type_resolution import TypeResolver
from fusec.ir.expr import Expr, Pointer, Struct, const, type_of
from fusec.ir.loops import Assign, Declare, DeclareArray

MAX_ARRAY = 1 << 14  # elements of a local array; they live on the stack of every thread


class Declarations:
    """Lowers declarations."""

    def __init__(self, frame: FunctionFrame) -> None:
        self.frame, self.expressions = frame, ExpressionLowering(frame)
        self.lvalues, self.storage, self.types = (
            self.expressions.lvalues,
            self.expressions.storage,
            self.expressions.types,
        )
        frame.array_of = self.array_of

    def declaration(self, node: s.Declaration) -> None:
        """A declaration statement. Raises BadDeclaration, Redeclared or NotSupported."""
        qualifiers = node.type.qualifiers
        for word in ("extern", "static"):
            if word in qualifiers and not node.type.const:
                raise NotSupported(f"a '{word}' variable is", "elements share nothing; use a raw argument").at(
                    node.span
                )
        for each in node.declarators:
            self._declare(node, each)

    def _declare(self, node: s.Declaration, each: s.Declarator) -> None:
        kind = self.types.resolve(s.Qualified(node.type.span, node.type.base, node.type.qualifiers, each.marks))
        const_reason = f"constant '{each.name}'" if node.type.const else ""
        if each.arrays:
            self.frame.bind(each.name, self.declare_array(node, each, kind, const_reason), each.span)
            return
        match kind:
            case PointerTo(reference=True):
                self.frame.bind(each.name, self._reference(each, kind), each.span)
            case PointerTo(element=Struct(name=name)):
                cure = "use the struct itself; a function may take its address"
                raise NotSupported(f"a variable that points to struct {name} is", cure).at(each.span)
            case PointerTo(element=DType() as element):
                self._pointer_variable(each, element, "the target of a const pointer" if kind.const else "")
            case Auto():
                self._auto(each, const_reason)
            case Void() | RawOf() | PointerTo():
                shown = f"'{each.name}' cannot be {show(kind)}"
                raise BadDeclaration(shown, "name a type with values").at(node.type.span)
            case _:
                self.declare_variable(each, kind, self._initial(each, kind), const_reason)

    def _initial(self, each: s.Declarator, kind: DType | Struct) -> Expr | None:
        """The initial value, converted; None if the declaration gives none."""
        if each.args is not None:
            return self.expressions.made(kind, each.args, each.span)
        match each.value:
            case None:
                return self.expressions.initially(kind, each.span)
            case s.Braced() as braced:
                return self.expressions.braced(braced, kind)
            case value:
                return self.storage.converted(self.expressions.value(value), kind, value.span)

    def declare_variable(self, each: s.Declarator, kind: DType | Struct, value: Expr | None, reason: str) -> None:
        """A variable with an initial value. reason: why it may not be assigned."""
        name = self.frame.fresh(each.name)
        if each.name in self.frame.unit.addressed and isinstance(kind, DType):
            self.frame.bind(each.name, self.frame.in_memory(name, kind, value, reason), each.span)
            return
        if reason and value is not None and (known := fold(value, self.frame.known)) is not None:
            self.frame.known[name] = known
        self.frame.bind(each.name, sym.Variable(name, kind, reason), each.span)
        self.frame.emit(Declare(name, kind, value, line=self.frame.line))

    def _auto(self, each: s.Declarator, reason: str) -> None:
        if each.value is None or isinstance(each.value, s.Braced):
            raise BadDeclaration(f"'auto {each.name}' needs a value", "write auto x = value, or name the type").at(
                each.span
            )
        names_place = isinstance(each.value, (s.Name, s.Index)) or not reason
        if "&" in each.marks and names_place:
            found = self.lvalues.frozen(self.lvalues.place(each.value, "a reference"), each.name)
            self.frame.bind(each.name, _constant(found) if reason else found, each.span)
        elif self.lvalues.is_pointer(each.value):
            address = self.lvalues.address(each.value)
            self._pointer_variable(each, address.element, address.const)
        else:
            value = self.expressions.value(each.value)
            kind = type_of(value)
            assert isinstance(kind, (DType, Struct)), "values are scalars or structs"
            self.declare_variable(each, kind, value, reason)

    def _reference(self, each: s.Declarator, kind: PointerTo) -> sym.Symbol:
        if each.value is None or isinstance(each.value, s.Braced):
            raise BadDeclaration(f"reference '{each.name}' needs a target", "write T& x = y[i]").at(each.span)
        if kind.const and not isinstance(each.value, (s.Name, s.Index)):  # a constant one keeps a value alive
            value = self.storage.converted(self.expressions.value(each.value), kind.element, each.value.span)
            return sym.Variable(self.frame.temporary(value, each.name).name, kind.element, f"constant '{each.name}'")
        place = self.lvalues.place(each.value, "a reference")
        element = place.element if isinstance(place, sym.Address) else place.type
        if element != kind.element:
            shown = f"reference '{each.name}' to {kind.element.name} cannot refer to {show(element)}"
            raise BadDeclaration(shown, "declare it with the type of its target").at(each.span)
        found = self.lvalues.frozen(place, each.name)
        return _constant(found) if kind.const else found

    def _pointer_variable(self, each: s.Declarator, element: DType, reason: str) -> None:
        variable = sym.PointerVariable(self.frame.fresh(each.name), element, reason)
        if each.value is None or _is_null(each.value):
            self.frame.emit(Declare(variable.name, Pointer(element, "global", bool(reason)), line=self.frame.line))
            variable.declared = (self.frame.blocks[-1], len(self.frame.blocks[-1]) - 1)
        elif isinstance(each.value, s.Braced):
            raise BadDeclaration(f"pointer '{each.name}' needs an address", "write T* p = &x[0]").at(each.value.span)
        else:
            address = self.lvalues.address(each.value)
            with self.frame.block() as assigned:
                self.expressions.point(variable, address, each.value.span)
            *before, last = assigned
            assert isinstance(last, Assign), "pointing somewhere is an assignment"
            assert variable.type is not None, "pointing somewhere settles the type"
            self.frame.emit(*before)
            self.frame.emit(Declare(variable.name, variable.type, last.value, line=self.frame.line))
        self.frame.bind(each.name, variable, each.span)

    # --- arrays ---

    def declare_array(self, node: s.Declaration, each: s.Declarator, kind: CType, reason: str) -> sym.LocalArrayOf:
        """A local array with its values. reason: why it may not be assigned."""
        if not isinstance(kind, DType):
            cure = "declare one array for every field" if isinstance(kind, Struct) else "arrays hold scalars"
            raise NotSupported(f"an array of {show(kind)} is", cure).at(node.type.span)
        lengths = self._lengths(each)
        values = BracedValues()
        if isinstance(each.value, s.Braced):
            self._flatten(each.value, lengths, kind, values)
        elif each.value is not None or each.args is not None:
            raise BadDeclaration(f"array '{each.name}' needs its values in braces", "write T x[] = {a, b}").at(
                each.span
            )
        total = 1
        for length in lengths:
            total *= length
        if total > MAX_ARRAY:
            shown = f"array '{each.name}' has {total} elements, more than {MAX_ARRAY}"
            raise BadDeclaration(shown, "pass a raw array for scratch memory").at(each.span)
        name = self.frame.fresh(each.name)
        self.frame.emit(DeclareArray(name, kind, total, tuple(values), line=self.frame.line))
        return sym.LocalArrayOf(name, kind, lengths, reason)

    def _lengths(self, each: s.Declarator) -> tuple[int, ...]:
        lengths: list[int] = []
        for at, length in enumerate(each.arrays):
            if length is not None:
                value = int(self.types.constant(length, f"the length of '{each.name}'").value)
            elif at == 0 and isinstance(each.value, s.Braced) and each.value.elements:
                value = len(each.value.elements)
            else:
                raise BadDeclaration(f"the length of '{each.name}' is missing", "write T x[4] or T x[] = {a, b}").at(
                    each.span
                )
            if value < 1:
                raise BadDeclaration(f"'{each.name}' would have {value} elements", "arrays have one or more").at(
                    each.span
                )
            lengths.append(value)
        return tuple(lengths)

    def _flatten(self, node: s.Braced, lengths: tuple[int, ...], kind: DType, values: BracedValues) -> None:
        """The elements row by row, short rows filled with zeros. Raises BadDeclaration if there are too many."""
        nested = any(isinstance(element, s.Braced) for element in node.elements)
        total = 1
        for length in lengths if not nested else lengths[:1]:
            total *= length
        if len(node.elements) > total:
            shown = f"{counted(len(node.elements), 'value')} for {counted(total, 'element')}"
            raise BadDeclaration(shown, "make the array longer, or omit its length").at(node.span)
        row = 1
        for length in lengths[1:]:
            row *= length
        for element in node.elements:
            start = len(values)
            if isinstance(element, s.Braced) and len(lengths) > 1:
                self._flatten(element, lengths[1:], kind, values)
                values += [const(0, kind)] * (start + row - len(values))
            else:
                self.expressions.append(values, element, kind)

    def array_of(self, node: s.Name) -> sym.Symbol:
        """The meaning of a name; a constant array of the preamble is declared in this function at its first use."""
        found = self.frame.lookup(node)
        if not isinstance(found, sym.GlobalArray):
            return found
        line, self.frame.line = self.frame.line, 0
        with self.frame.block() as declared:
            kind = self.types.resolve(found.declaration.type)
            array = self.declare_array(
                found.declaration, found.declarator, kind, f"array '{node.name}' of the preamble"
            )
        self.frame.prologue += declared
        self.frame.line = line
        self.frame.symbols[0][node.name] = array
        return array

    # --- preambles ---

    def preamble(self, items: tuple[s.External, ...]) -> None:
        """Add the declarations of a preamble to the unit."""
        for item in items:
            match item:
                case s.FunctionDef():
                    self.frame.unit.declare_function(item)
                case s.StructDef():
                    self.types.declare_struct(item)
                case s.EnumDef():
                    self._global_enumeration(item)
                case s.Alias(name=name, type=kind):
                    self.frame.unit.types[name] = self.types.resolve(kind)
                case s.Declaration():
                    self._global(item)
                case s.Pass():
                    pass

    def _global_enumeration(self, item: s.EnumDef) -> None:
        types = TypeResolver(self.frame.within({}))
        self.frame.unit.globals.update(
            {name: sym.NamedConstant(value) for name, value in types.enumeration(item).items()}
        )
        self.frame.unit.types.update(types.frame.types[0])

    def _global(self, item: s.Declaration) -> None:
        for each in item.declarators:
            if not item.type.const:
                cure = "declare it const or constexpr; elements share memory through raw arguments alone"
                raise NotSupported(f"the variable '{each.name}' of the preamble is", cure).at(each.span)
            if each.arrays:
                self.frame.unit.globals[each.name] = sym.GlobalArray(item, each)
                continue
            kind = self.types.resolve(s.Qualified(item.type.span, item.type.base, item.type.qualifiers, each.marks))
            self.frame.unit.globals[each.name] = sym.NamedConstant(self._global_value(each, kind))

    def _global_value(self, each: s.Declarator, kind: CType) -> Expr:
        with self.frame.block() as effects:
            if isinstance(kind, Auto) and each.value is not None and not isinstance(each.value, s.Braced):
                value: Expr | None = self.expressions.value(each.value)
            elif isinstance(kind, (DType, Struct)):
                value = self._initial(each, kind)
            else:
                raise NotSupported(f"a constant of type {show(kind)} is", "constants are scalars or structs").at(
                    each.span
                )
        if value is None or effects:
            raise BadDeclaration(f"constant '{each.name}' needs a plain value", "write const T x = value;").at(
                each.span
            )
        return value


def _constant(place: sym.Symbol) -> sym.Symbol:
    """The same place, to be read only."""
    match place:
        case sym.Address(pointer=pointer, element=element):
            return sym.Address(pointer, element, "a constant reference")
        case sym.Variable(name=name, type=type_):
            return sym.Variable(name, type_, "a constant reference")
        case sym.StructAddress(pointers=pointers, type=type_):
            return sym.StructAddress(pointers, type_, "a constant reference")
        case _:
            return place


def _is_null(node: s.Expression) -> bool:
    match node:
        case s.Word(word="nullptr") | s.Name(name="NULL") | s.Numeral(text="0") | s.Braced(elements=()):
            return True
    return False
