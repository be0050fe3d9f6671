"""Expressions: syntax tree to typed IR, with effects hoisted into preceding statements."""

from __future__ import annotations

from fusec.base.dtypes import BOOL, INT64, DType, real_type
from fusec.base.source import Span
from fusec.errors.language import ArgumentCount, BadDeclaration, BadOperands, CannotConvert, NotAValue, NotSupported
from fusec.frontends.c import literals
from fusec.frontends.c import symbols as sym
from fusec.frontends.c import syntax as s
from fusec.frontends.c.arithmetic import binary, common_choice, convert, prefix, step, to, truth
from fusec.frontends.c.c_types import PointerTo, Void, show
from fusec.frontends.c.calls import SHAPES, CallLowering
from fusec.frontends.c.frame import FunctionFrame
from fusec.frontends.c.lvalues import ADDRESSES, LvalueLowering
from fusec.frontends.c.sequencing import changes
from fusec.frontends.c.storage import why_constant
from fusec.frontends.c.warnings import is_power, power
from fusec.ir.expr import Expr, Pointer, Struct, apply, const, type_of
from fusec.ir.loops import Assign, If, Make, Query
from fusec.ir.reductions import parts_of

COMPARING = frozenset(("==", "!=", "<", ">", "<=", ">=", "-"))


class BracedValues(list[Expr]):
    """Values of a braced list; effects of later values cannot reach the first `settled` of them."""

    settled = 0


class ExpressionLowering:
    """Lowers expressions."""

    def __init__(self, frame: FunctionFrame) -> None:
        self.frame, self.lvalues = frame, LvalueLowering(frame)
        self.storage, self.types = self.lvalues.storage, self.lvalues.types
        self.calls = CallLowering(frame, self.lvalues)
        frame.value, frame.effect = self.value, self.effect

    # --- values ---

    def value(self, node: s.Expression) -> Expr:
        """The value of an expression, a scalar or a struct. Raises the errors of names and types."""
        with self.frame.nested(node.span):
            return self._value(node)

    def _value(self, node: s.Expression) -> Expr:
        match node:
            case s.Name():
                return self._name(node)
            case s.Numeral():
                return literals.number(node, self.frame.unit.single)
            case s.Binary() | s.Comma():
                return self._spine(node)
            case s.Prefix():
                return self._prefix(node)
            case s.Postfix():
                return self._step(node, wanted=True)
            case s.Assignment():
                return self.assign(node, wanted=True)
            case s.Index():
                return self.calls.quantity(node) or self.storage.load(self.lvalues.element(node))
            case s.CallNode():
                found = self.calls.call(node)
                if found is None:
                    raise NotAValue("this call", "the function returns nothing").at(node.span)
                return found
            case s.Attribute():
                return self._attribute(node)
            case s.Choose():
                return self._choice(node)
            case s.Cast(type=kind, value=inner):
                return self._cast(kind, inner, node.span)
            case s.Construct():
                return self._construct(node)
            case _:
                return self._leaf(node)

    def _leaf(self, node: s.Expression) -> Expr:
        match node:
            case s.Character():
                return literals.character(node)
            case s.Word(word="nullptr"):
                raise NotAValue("'nullptr'", "it can only be assigned to a pointer").at(node.span)
            case s.Word():
                return literals.word(node)
            case s.Sizeof():
                return self.types.sizeof(node)
            case s.Trait():
                return self.types.trait(node)
            case s.String():
                raise NotSupported("a string is", "kernels compute with numbers").at(node.span)
            case s.TemplateId():
                raise NotAValue(f"function '{node.name}'", "call it with arguments").at(node.span)
            case _:
                raise AssertionError(f"{type(node).__name__} is handled elsewhere")

    def _name(self, node: s.Name) -> Expr:
        found = self.frame.lookup(node)
        match found:
            case sym.Variable() | sym.Address() | sym.FieldPlace() | sym.StructAddress(pointer=False):
                return self.storage.load(found)
            case sym.NamedConstant(value=value):
                return value
            case _:
                raise self.lvalues.not_a_value(found, node)

    def _spine(self, node: s.Binary | s.Comma) -> Expr:
        """A chain of operators that leans to the left, as long sums do, without recursion along it."""
        chain: list[s.Binary | s.Comma] = []
        first: s.Expression = node
        while isinstance(first, (s.Binary, s.Comma)):
            chain.append(first)
            first = first.left if isinstance(first, s.Binary) else first.first
        if isinstance(chain[-1], s.Comma):
            self.effect(first)
            value: Expr = const(0, BOOL)
        else:
            self._refuse_addresses(chain)
            value = self.value(first)
        for at in range(len(chain) - 1, -1, -1):
            each = chain[at]
            if isinstance(each, s.Binary):
                value = self.frame.bounded(self._joined(each, value))
            elif at and isinstance(chain[at - 1], s.Comma):
                self.effect(each.second)
            else:
                value = self.value(each.second)
        return value

    def _refuse_addresses(self, chain: list[s.Binary | s.Comma]) -> None:
        """Raises BadOperands for addresses that are compared or subtracted."""
        for each in chain:
            match each:
                case s.Binary(op=op, left=a, right=right, place=span) if op in COMPARING and self.lvalues.is_pointer(a):
                    if op != "-" or self.lvalues.is_pointer(right):
                        raise BadOperands(op, "pointers", ADDRESSES).at(span)

    def _joined(self, node: s.Binary, left: Expr) -> Expr:
        if node.op in ("&&", "||"):
            return self._logical(node, left)
        if is_power(node) and isinstance(node.right, s.Prefix) and not self.lvalues.is_pointer(node.right.operand):
            raise power(node)
        if self.lvalues.is_pointer(node.right):
            raise BadOperands(node.op, "pointers", ADDRESSES).at(node.place)
        mark = self.frame.mark
        right = self.value(node.right)
        (left,) = self.frame.kept([left], mark)
        return binary(node.op, left, right, node.place)

    def _logical(self, node: s.Binary, left: Expr) -> Expr:
        """``&&`` and ``||``: the right side is evaluated on demand, as an If where it has effects."""
        test = self._test(left, node.left.span)
        with self.frame.block() as effects:
            right = self._test(self.value(node.right), node.right.span)
        if not effects:
            return apply("logical_and" if node.op == "&&" else "logical_or", test, right)
        kept = self.frame.temporary(test)
        condition = kept if node.op == "&&" else apply("logical_not", kept)
        self.frame.emit(If(condition, (*effects, Assign(kept.name, right, line=self.frame.line)), line=self.frame.line))
        return kept

    def condition(self, node: s.Expression) -> Expr:
        """An expression as a condition."""
        return self._test(self.value(node), node.span)

    def _test(self, value: Expr, span: Span) -> Expr:
        if not isinstance(type_of(value), DType):
            raise CannotConvert(show(type_of(value)), "bool", "compare its fields").at(span)
        return truth(value)

    def _choice(self, node: s.Choose) -> Expr:
        condition = self.condition(node.condition)
        a, b, then, orelse = self.frame.either(node, self.value)
        left, right = type_of(a), type_of(b)
        if isinstance(left, DType) and isinstance(right, DType):
            common: DType | Struct = common_choice(left, right)
            assert isinstance(common, DType), "scalars meet in a scalar"
            a, b = to(a, common), to(b, common)
            if not then and not orelse:
                return self.frame.bounded(apply("where", condition, a, b))
        elif left == right and isinstance(left, Struct):
            common = left
        else:
            raise CannotConvert(show(right), show(left), "both sides of ':' need one type").at(node.orelse.span)
        kept = self.frame.variable(common)
        assigned = Assign(kept.name, a, line=self.frame.line), Assign(kept.name, b, line=self.frame.line)
        self.frame.emit(If(condition, (*then, assigned[0]), (*orelse, assigned[1]), line=self.frame.line))
        return kept

    def _prefix(self, node: s.Prefix) -> Expr:
        match node.op:
            case "++" | "--":
                return self._step(node, wanted=True)
            case "*":
                return self.storage.load(self.storage.struct_place(node) or self.lvalues.address(node.operand))
            case "&":
                raise NotAValue("an address", "assign it to a pointer, or pass it to a function").at(node.span)
            case op:
                return self.frame.bounded(prefix(op, self.value(node.operand), node.span))

    def _step(self, node: s.Prefix | s.Postfix, wanted: bool) -> Expr:
        """``++`` and ``--``: the new value before the operand, the old one after it."""
        if isinstance(node, s.Prefix):
            return self.lvalues.stepped(node, wanted)[1]
        place = self.lvalues.place(node.operand, f"'{node.op}'")
        old = self.storage.load(place)
        if wanted:
            old = self.frame.temporary(old)
        self.storage.store(place, step(old, node.op, node.span), node.span, wanted=False)
        return old

    # --- assignment and effects ---

    def assign(self, node: s.Assignment, wanted: bool) -> Expr:
        """An assignment; its value is the new value of the target, which is found after the right side's value."""
        if self.lvalues.is_pointer(node.target):
            if wanted:
                raise NotAValue("a pointer assignment", "make it a statement of its own").at(node.span)
            self._assign_pointer(node)
            return const(0, BOOL)
        with self.frame.block() as found:
            place = self.lvalues.place(node.target, "'='")
        if isinstance(node.value, s.Braced):
            value = self.braced(node.value, place.element if isinstance(place, sym.Address) else place.type)
        else:
            value = self.value(node.value)
        mark = self.frame.mark
        self.frame.emit(*found)
        (value,) = self.frame.kept([value], mark)
        if node.op:
            value = self.frame.bounded(binary(node.op, self.storage.load(place), value, node.span))
        return self.storage.store(place, value, node.target.span if why_constant(place) else node.value.span, wanted)

    def _assign_pointer(self, node: s.Assignment) -> None:
        target = self.frame.lookup(node.target) if isinstance(node.target, s.Name) else None
        if not isinstance(target, sym.PointerVariable) or isinstance(node.value, s.Braced):
            raise NotAValue("this", "only pointer variables take addresses").at(node.target.span)
        if node.op:
            moved = s.Binary(node.span, node.op, node.span, node.target, node.value)
            if node.op not in ("+", "-"):
                raise BadOperands(f"{node.op}=", "pointers", "only += and -= move pointers").at(node.span)
            self.frame.set(target, self.lvalues.address(moved).pointer)
            return
        self.point(target, self.lvalues.address(node.value), node.value.span)

    def point(self, target: sym.PointerVariable, address: sym.Address, span: Span) -> None:
        """Make a pointer variable point somewhere. Raises CannotConvert."""
        given = type_of(address.pointer)
        assert isinstance(given, Pointer), "addresses are pointers"
        if address.offset is not None and address.element == target.element and target.type is None:
            target.in_bytes = True
        if (address.offset is not None) != target.in_bytes or address.element != target.element:
            raise CannotConvert(f"a pointer to {address.element}", f"a pointer to {target.element}").at(span)
        if address.const and not target.const:
            raise CannotConvert(f"the address of {address.const}", "a pointer to be written", "declare it const").at(
                span
            )
        if target.type is None:
            target.settle(Pointer(given.element, given.space, bool(target.const)))
        elif (given.element, given.space) != (target.type.element, target.type.space):
            cure = "a pointer cannot switch between arguments and local arrays"
            raise CannotConvert(f"an address in {given.space} memory", f"one in {target.type.space} memory", cure).at(
                span
            )
        pointer = self.lvalues.unbytes(address).pointer if address.offset is not None else address.pointer
        self.frame.set(target, pointer)

    def effect(self, node: s.Expression) -> None:
        """Lower an expression for its effect alone."""
        with self.frame.nested(node.span):
            match node:
                case s.Assignment():
                    self.assign(node, wanted=False)
                case s.Postfix() | s.Prefix(op="++" | "--") if self.lvalues.is_pointer(node):
                    self.lvalues.address(node)
                case s.Postfix() | s.Prefix(op="++" | "--"):
                    self._step(node, wanted=False)
                case s.CallNode():
                    self.calls.call(node, wanted=False)
                case s.Comma():
                    self._effects(node)
                case s.Choose():
                    self._choice_effect(node)
                case s.Cast(type=kind, value=value) if isinstance(self.types.resolve(kind), Void):
                    self.effect(value)
                case _ if self.lvalues.is_pointer(node):
                    self.lvalues.address(node)
                case _:
                    self.value(node)

    def _effects(self, node: s.Comma) -> None:
        parts: list[s.Expression] = []
        rest: s.Expression = node
        while isinstance(rest, s.Comma):
            parts.append(rest.second)
            rest = rest.first
        for part in (rest, *reversed(parts)):
            self.effect(part)

    def _choice_effect(self, node: s.Choose) -> None:
        condition = self.condition(node.condition)
        *_, then, orelse = self.frame.either(node, self.effect)
        if then or orelse:
            self.frame.emit(If(condition, tuple(then), tuple(orelse), line=self.frame.line))

    # --- members, casts and made values ---

    def _attribute(self, node: s.Attribute) -> Expr:
        if isinstance(node.value, s.Name):
            match self.frame.lookup(node.value):
                case sym.RawArray(name=name) if node.name == "ndim":
                    return Query(name, "ndim", None, INT64)
                case sym.Indexer(axes=axes) if node.name == "ndim":
                    return Query("", "ndim", None, INT64) if axes is None else const(len(axes), INT64)
                case sym.RawArray() | sym.Indexer():
                    raise NotAValue(f"'{node.value.name}.{node.name}'", f"call it: {node.value.name}.{node.name}()").at(
                        node.span
                    )
        owner = self.storage.owner(node)
        if owner is not None:
            return self.storage.load(self.storage.select(owner, node))
        value = self.value(node.value)
        struct = type_of(value)
        if isinstance(struct, Struct):
            return self.storage.field_of(value, node)
        cure = f"{show(struct)} has no fields"
        if node.name in ("real", "imag") and isinstance(struct, DType) and struct.is_complex:
            cure = f"call it: {node.value.span.text}.{node.name}()"
        raise NotAValue(f"'{node.value.span.text}.{node.name}'", SHAPES.get(node.name, cure)).at(node.span)

    def _cast(self, kind: s.Qualified, inner: s.Expression, span: Span) -> Expr:
        wanted = self.types.resolve(kind)
        if isinstance(wanted, (PointerTo, Void)):
            raise NotAValue(f"a cast to {show(wanted)}", "read what it points to").at(span)
        if self.lvalues.is_pointer(inner):
            raise NotSupported(f"an address as {show(wanted)} is", ADDRESSES).at(span)
        value = self.value(inner)
        if isinstance(wanted, (DType, Struct)):
            return self.frame.bounded(self.storage.converted(value, wanted, span))
        raise NotAValue("a cast to auto", "name the type").at(span)

    def _construct(self, node: s.Construct) -> Expr:
        wanted = self.types.resolve(s.Qualified(node.type.span, node.type, frozenset()))
        if isinstance(wanted, (DType, Struct)):
            return self.made(wanted, node.args, node.span)
        raise NotAValue(f"a value of type {show(wanted)}", "name a scalar type or a struct").at(node.span)

    def made(self, wanted: DType | Struct, args: tuple[s.Expression, ...], span: Span) -> Expr:
        """A value made of parts: ``T()``, ``T(x)``, ``complex<T>(re, im)``, ``S{a, b}``."""
        if isinstance(wanted, Struct):
            return self._struct(wanted, args, span)
        if not args:
            return const(0, wanted)
        if len(args) == 1:
            return self.braced(args[0], wanted) if isinstance(args[0], s.Braced) else self._scalar(args[0], wanted)
        if not wanted.is_complex or len(args) > 2:
            expected = "1 or 2" if wanted.is_complex else "1"
            raise ArgumentCount(wanted.name, expected, len(args)).at(span)
        part = real_type(wanted)
        parts = BracedValues()
        for arg in args:
            self.append(parts, arg, part)
        return self.frame.bounded(apply("complex", *parts))

    def _scalar(self, node: s.Expression, wanted: DType) -> Expr:
        if self.lvalues.is_pointer(node):
            raise NotSupported(f"an address as {wanted} is", ADDRESSES).at(node.span)
        return self.frame.bounded(convert(self.value(node), wanted, node.span))

    def _struct(self, wanted: Struct, args: tuple[s.Expression, ...], span: Span) -> Expr:
        record = self.frame.unit.record(wanted)
        if record.constructors:
            return self.calls.constructed(wanted, args, span)
        given = BracedValues()
        if len(args) == 1 and not isinstance(args[0], s.Braced) and len(record.members) > 1:
            value = self.value(args[0])
            if type_of(value) == wanted:
                return value
            (first, *_), args = record.members.values(), ()
            given.append(self.storage.converted(value, first.type, span))
        if len(args) > len(record.members):
            raise ArgumentCount(f"struct {wanted.name}", f"up to {len(record.members)}", len(args)).at(span)
        members = list(record.members.values())
        for member, arg in zip(members, args, strict=False):
            self.append(given, arg, member.type)
        for member in members[len(given) :]:
            self.append(given, s.Braced(span, ()) if member.default is None else member.default, member.type)
        return Make(tuple(part for value in given for part in parts_of(value)), wanted)

    def initially(self, kind: DType | Struct, span: Span) -> Expr | None:
        """The value of a variable without an initialiser: None for zeros. Raises ArgumentCount."""
        if isinstance(kind, DType):
            return None
        record = self.frame.unit.record(kind)
        starts = [member.default or self.initially(member.type, span) for member in record.members.values()]
        return self.made(kind, (), span) if record.constructors or any(starts) else None

    def append(self, values: BracedValues, node: s.Expression, wanted: DType | Struct) -> None:
        """Evaluate the next element of a list; the values before it do not change."""
        mark = self.frame.mark
        if isinstance(node, s.Braced):
            value = self.braced(node, wanted)
        elif isinstance(wanted, Struct):
            value = self.storage.converted(self.value(node), wanted, node.span)
        else:
            value = self._scalar(node, wanted)
        if self.frame.mark > mark and changes(self.frame.blocks[-1][mark:]):
            values[values.settled :] = self.frame.kept(values[values.settled :], mark, for_good=True)
            values.settled = len(values)
        values.append(value)

    def braced(self, node: s.Braced, wanted: DType | Struct) -> Expr:
        """A value from ``{...}``. Raises BadDeclaration if there are too many elements for a scalar."""
        if isinstance(wanted, DType) and not wanted.is_complex and len(node.elements) > 1:
            raise BadDeclaration(f"{len(node.elements)} values for one {wanted}", "declare an array: T x[] = {...}").at(
                node.span
            )
        return self.made(wanted, node.elements, node.span)
