"""Functions: their parameters, the results of constructors, and their place among the functions of the IR."""

from __future__ import annotations

from fusec.base.dtypes import BOOL, DType
from fusec.base.records import replace
from fusec.base.source import Span
from fusec.errors.language import NotSupported, Recursion, UnknownMember
from fusec.frontends.c import syntax as s
from fusec.frontends.c.c_types import CType, PointerTo, RawOf
from fusec.frontends.c.calls import Copy
from fusec.frontends.c.context import CallOperand, Candidate, Record, Template
from fusec.frontends.c.declarations import Declarations
from fusec.frontends.c.expressions import BracedValues
from fusec.frontends.c.frame import FunctionFrame, Inlined
from fusec.frontends.c.symbols import Address, PointerVariable, RawArray, StructAddress, Symbol, Variable
from fusec.frontends.c.type_resolution import THIS, without_void
from fusec.ir import loops as ir
from fusec.ir.expr import Expr, Pointer, Struct, Type, const, type_of
from fusec.ir.walk import changed_names

TRUE, FALSE = const(True, BOOL), const(False, BOOL)


class FunctionLowering:
    """Lowers functions."""

    def __init__(self, frame: FunctionFrame) -> None:
        self.frame, self.declarations = frame, Declarations(frame)
        self.expressions, self.storage = self.declarations.expressions, self.declarations.storage
        self.types, self.calls = self.declarations.types, self.expressions.calls
        frame.instantiate, frame.inline = self.instantiate, self.inline

    def instantiate(self, chosen: Candidate, name: str, types: tuple[tuple[Type, ...], ...]) -> Template:
        """Lower a device function for the types of its arguments."""
        function, frame = chosen.function, self.frame
        assert function.body is not None, "mere declarations are not called"
        frame.result = self.types.resolve(function.result)
        owner = frame.unit.owners.get(id(function))
        symbols: dict[str, Symbol] = {}
        frame.symbols.append(symbols)  # of the struct's fields, which parameters hide
        with frame.scope():
            params_of = without_void(function.params)
            groups = [self._bind_parameter(*each) for each in zip(params_of, chosen.params, types, strict=True)]
            if function.initials is not None and owner is not None:
                frame.made = self._start(function.initials, owner, symbols)
            elif owner is not None and THIS in frame.symbols[-1]:
                self._see_fields(owner, frame.symbols[-1][THIS], symbols)
            with frame.scope():
                frame.statements(function.body.body)
        body = [*frame.prologue, *frame.blocks[0]]
        result = self.result_type()
        if frame.made is not None and not ends(body):
            body.append(ir.Return(self.storage.load(frame.made)))
        elif result is not None and not ends(body):
            body += self._zero_result(result)
        names = [each for group in groups for each in group]
        flat = tuple(kind for group in types for kind in group)
        final = self._copied(names, flat, body)
        text = function.span.file.line(function.span.line).strip()
        made = ir.Function(name, tuple(zip(final, flat, strict=True)), result, tuple(body), text)
        return Template(made, frame.impure)

    # --- functions of raw arrays ---

    def inline(self, chosen: Candidate, operands: list[CallOperand], span: Span) -> Expr | None:
        """The inlined text of a function that has raw arrays. Raises Recursion."""
        function, unit = chosen.function, self.frame.unit
        key = (id(function), tuple(chosen.bindings.items()))
        if key in unit.active:
            raise Recursion(function.name).at(span)
        unit.active.append(key)
        frame = self.frame.within(chosen.bindings, function)
        frame.share(self.frame)
        inside = FunctionLowering(frame)
        frame.result = inside.types.resolve(function.result)
        copies: list[Copy] = []
        for parameter, kind, operand in zip(without_void(function.params), chosen.params, operands, strict=True):
            if isinstance(operand.value, RawArray) and isinstance(kind, RawOf):
                frame.bind(parameter.name, operand.value, parameter.span)
            else:
                inside.receive(parameter, kind, self.calls.argument(kind, operand, copies))
        result = inside.result_type()
        kept = None if result is None else frame.variable(result, f"_{function.name}")
        inlined = frame.inlined = Inlined(kept)
        assert function.body is not None, "mere declarations are not called"
        with frame.block() as body, frame.scope():
            frame.statements(function.body.body)
        if inlined.flag is not None:
            self.frame.emit(ir.Declare(inlined.flag.name, BOOL, line=self.frame.line))
        if inlined.returns == 0 or (inlined.returns == 1 and inlined.flag is None and isinstance(body[-1], ir.Break)):
            self.frame.emit(*body[: len(body) - inlined.returns])
        else:
            self.frame.emit(ir.While(TRUE, (*body, ir.Break(line=self.frame.line)), line=self.frame.line))
        unit.active.pop()
        self.frame.impure = self.frame.impure or frame.impure
        self.calls.copy_back(copies)
        return kept

    def receive(self, parameter: s.FunctionParam, kind: CType, args: tuple[Expr, ...]) -> None:
        """Bind a parameter of an inlined function."""
        with self.frame.block() as bound:
            names = self._bind_parameter(parameter, kind, tuple(type_of(arg) for arg in args))
        for name, arg in zip(names, args, strict=True):
            self.frame.emit(ir.Declare(name, type_of(arg), arg, line=self.frame.line))
        self.frame.emit(*bound)

    def give(self, value: Expr | None) -> None:
        """Return from the function."""
        frame, inlined = self.frame, self.frame.inlined
        if inlined is None:
            frame.emit(ir.Return(value, line=frame.line))
            return
        inlined.returns += 1
        if value is not None and inlined.result is not None:
            frame.set(inlined.result, value)
        if frame.break_targets:
            inlined.flag = inlined.flag or ir.Local(frame.fresh("_returned"), BOOL)
            frame.set(inlined.flag, TRUE)
        frame.emit(ir.Break(line=frame.line))

    def repeat(self, loop: ir.While) -> None:
        """Emit a loop; one that a return may have left is left further on."""
        self.frame.emit(loop)
        if self.frame.inlined is not None and self.frame.inlined.flag is not None:
            self.frame.emit(ir.If(self.frame.inlined.flag, (ir.Break(line=loop.line),), line=loop.line))

    # --- members ---

    def _see_fields(self, owner: Record, this: Symbol, symbols: dict[str, Symbol]) -> None:
        """Let a member use the fields of its struct by their names."""
        assert isinstance(this, (Variable, StructAddress)), "the struct of a method is a value or in memory"
        place = replace(this, pointer=False) if isinstance(this, StructAddress) else this
        self.frame.member = (owner, place)
        symbols.update({name: self.storage.part_of(place, name) for name in owner.members})

    def _start(self, initials: tuple[s.Initial, ...], owner: Record, symbols: dict[str, Symbol]) -> Variable:
        """The struct that a constructor makes, with what its fields have before the body. Raises UnknownMember."""
        this = Variable(self.frame.fresh("_made"), owner.struct)
        self.frame.emit(ir.Declare(this.name, owner.struct))
        self.frame.symbols[-1][THIS] = this
        outer = self.frame.symbols.pop()  # parameters, which what fields are given sees first
        self._see_fields(owner, this, symbols)
        self.frame.symbols.append(outer)
        given = {each.name: each for each in initials}
        for each in initials:
            if each.name in owner.types and owner.types[each.name] == owner.struct:  # another constructor does it
                self.storage.store(
                    this, self.expressions.made(owner.struct, each.args, each.span), each.span, wanted=False
                )
                return this
            if each.name not in owner.members:
                known = f"its fields are {', '.join(owner.members)}"
                raise UnknownMember(f"struct '{owner.struct.name}'", each.name, known).at(each.span)
        for name, member in owner.members.items():
            place = self.storage.part_of(this, name)
            if name in given:
                span = given[name].span
                self.storage.store(
                    place, self.expressions.made(member.type, given[name].args, span), span, wanted=False
                )
            elif member.default is not None:
                start = BracedValues()
                self.expressions.append(start, member.default, member.type)
                self.storage.store(place, start[0], member.default.span, wanted=False)
            elif (value := self.expressions.initially(member.type, self.frame.span)) is not None:
                self.storage.store(place, value, self.frame.span, wanted=False)
        return this

    def _bind_parameter(self, parameter: s.FunctionParam, kind: CType, types: tuple[Type, ...]) -> list[str]:
        """Bind a parameter; the names of those of the IR that hold it, of which a struct in memory has several."""
        name = self.frame.fresh(parameter.name or "_unused")
        reason = f"constant '{parameter.name}'" if parameter.type.const else ""
        match kind, types:
            case PointerTo(element=Struct() as struct, reference=reference), _:
                names = [self.frame.fresh(f"{name}_{part}") for part, _ in struct.fields]
                pointers = tuple(ir.Local(part, type_) for part, type_ in zip(names, types, strict=True))
                is_pointer = not reference or parameter.name == THIS
                found: Symbol = StructAddress(pointers, struct, reason, is_pointer)
            case PointerTo(reference=True, element=DType() as element), (type_,):
                names, found = [name], Address(ir.Local(name, type_), element, reason)
            case PointerTo(element=DType() as element), (Pointer() as type_,):
                names, found = [name], PointerVariable(name, element, reason, type_)
            case DType(), _ if parameter.name in self.frame.unit.addressed:
                memory = self.frame.fresh(f"{name}_ref")
                names, found = [name], self.frame.in_memory(memory, kind, ir.Local(name, kind), reason)
            case DType() | Struct(), _:
                names, found = [name], Variable(name, kind, reason)
            case _:
                raise AssertionError(f"no parameter is {kind}")
        if parameter.name:
            self.frame.bind(parameter.name, found, parameter.span)
        return names

    def result_type(self) -> Type | None:
        """The type of the function's result, None if it returns nothing."""
        match self.frame.result:
            case PointerTo(element=Struct(name=name)):
                cure = "return the struct"
                raise NotSupported(f"a function that returns a pointer to struct {name} is", cure).at(self.frame.span)
            case DType() | Struct() as kind:
                return kind
            case PointerTo(element=DType() as element, const=is_const):
                return Pointer(element, "global", is_const)
            case _:
                return None

    def _zero_result(self, result: Type) -> list[ir.Stmt]:
        """A function that ends without return gives zero."""
        match result:
            case DType():
                return [ir.Return(const(0, result))]
            case Struct(fields=fields):
                return [ir.Return(ir.Make(tuple(const(0, dtype) for _, dtype in fields), result))]
            case Pointer():
                null = ir.Local(self.frame.fresh("_null"), result)
                return [ir.Declare(null.name, result), ir.Return(null)]

    def _copied(self, names: list[str], types: tuple[Type, ...], body: list[ir.Stmt]) -> list[str]:
        """Parameter names; one that the body assigns to is copied to a local first."""
        changed = changed_names(body)
        final: list[str] = []
        copies: list[ir.Stmt] = []
        for name, type_ in zip(names, types, strict=True):
            given = self.frame.fresh(f"{name}_in") if name in changed else name
            final.append(given)
            if given != name:
                copies.append(ir.Declare(name, type_, ir.Local(given, type_)))
        body[:0] = copies
        return final


def ends(body: list[ir.Stmt] | tuple[ir.Stmt, ...]) -> bool:
    """True if control cannot reach the end."""
    if not body:
        return False
    match body[-1]:
        case ir.Return():
            return True
        case ir.If(then=then, orelse=orelse):
            return ends(then) and ends(orelse)
        case ir.While(condition=condition, body=inner):
            return condition is TRUE and not _breaks(inner)
        case _:
            return False


def _breaks(body: tuple[ir.Stmt, ...]) -> bool:
    """True if statements leave the loop they stand in."""
    for statement in body:
        match statement:
            case ir.Break():
                return True
            case ir.If(then=then, orelse=orelse):
                if _breaks(then) or _breaks(orelse):
                    return True
    return False
