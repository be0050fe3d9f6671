"""Functions: their parameters, the results of constructors, and their place among the functions of the IR."""

from __future__ import annotations

from fusec.base.dtypes import BOOL, DType
from fusec.base.records import dataclass, replace
from fusec.base.source import Span
from fusec.errors.language import NotSupported, Recursion, UnknownMember
from fusec.frontends.c import syntax as s
from fusec.frontends.c.c_types import CType, PointerTo, RawOf
from fusec.frontends.c.calls import Copy
from fusec.frontends.c.context import Record, Template
from fusec.frontends.c.declarations import Declarations
from fusec.frontends.c.expressions import BracedValues
from fusec.frontends.c.overloads import CallOperand, Candidate
from fusec.frontends.c.structs import THIS, without_void
from fusec.frontends.c.symbols import Address, PointerVariable, RawArray, StructAddress, Symbol, Variable
from fusec.ir import loops as ir
from fusec.ir.expr import Expr, Pointer, Struct, Type, const, type_of

TRUE, FALSE = const(True, BOOL), const(False, BOOL)


@dataclass
class Context:
    """A loop, or a switch lowered to one so that ``break`` can leave it. flag: set by a ``continue`` inside."""

    is_switch: bool = False
    flag: ir.Local | None = None


@dataclass
class Inlined:
    """A function that is inlined at its call, as a loop of one iteration if it returns from its middle.

    result: what receives its result, None if it has none. flag: set by a return inside a loop. returns: met so far.
    """

    result: ir.Local | None
    flag: ir.Local | None = None
    returns: int = 0


class Bodies(Declarations):
    """Lowers functions. result: what the function returns, None for the kernel itself."""

    result: CType | None = None
    inline: Inlined | None = None
    made_here: Variable | None = None  # what a constructor makes

    def statements(self, body: tuple[s.Statement, ...]) -> None:
        """Lower statements in the current scope; the layer of statements does."""
        raise NotImplementedError

    def function(
        self, function: s.FunctionDef, name: str, params: tuple[CType, ...], types: tuple[tuple[Type, ...], ...]
    ) -> Template:
        """Lower a device function for the types of its arguments."""
        assert function.body is not None, "mere declarations are not called"
        self.result = self.resolve(function.result)
        owner = self.unit.owners.get(id(function))
        symbols: dict[str, Symbol] = {}
        self.symbols.append(symbols)  # of the struct's fields, which parameters hide
        with self.scope():
            params_of = without_void(function.params)
            groups = [self._bind_parameter(*each) for each in zip(params_of, params, types, strict=True)]
            if function.initials is not None and owner is not None:
                self.made_here = self._start(function.initials, owner, symbols)
            elif owner is not None and THIS in self.symbols[-1]:
                self._see_fields(owner, self.symbols[-1][THIS], symbols)
            with self.scope():
                self.statements(function.body.body)
        body = [*self.prologue, *self.blocks[0]]
        result = self.result_type()
        if self.made_here is not None and not ends(body):
            body.append(ir.Return(self.load(self.made_here)))
        elif result is not None and not ends(body):
            body += self._zero_result(result)
        names = [each for group in groups for each in group]
        flat = tuple(kind for group in types for kind in group)
        final = self._copied(names, flat, body)
        text = function.span.file.line(function.span.line).strip()
        made = ir.Function(name, tuple(zip(final, flat, strict=True)), result, tuple(body), text)
        return Template(made, self.impure)

    # --- functions of raw arrays ---

    def inlined(self, chosen: Candidate, operands: list[CallOperand], span: Span) -> Expr | None:
        """The inlined text of a function that has raw arrays. Raises Recursion."""
        function = chosen.function
        key = (id(function), tuple(chosen.bindings.items()))
        if key in self.unit.active:
            raise Recursion(function.name).at(span)
        self.unit.active.append(key)
        frame = self.inside(function, chosen.bindings)
        frame.share(self)
        frame.result = frame.resolve(function.result)
        copies: list[Copy] = []
        for parameter, kind, operand in zip(without_void(function.params), chosen.params, operands, strict=True):
            frame.receive(parameter, kind, operand, self, copies)
        result = frame.result_type()
        kept = None if result is None else frame.variable(result, f"_{function.name}")
        inline = frame.inline = Inlined(kept)
        assert function.body is not None, "mere declarations are not called"
        with frame.block() as body, frame.scope():
            frame.statements(function.body.body)
        if inline.flag is not None:
            self.emit(ir.Declare(inline.flag.name, BOOL, line=self.line))
        if inline.returns == 0 or (inline.returns == 1 and inline.flag is None and isinstance(body[-1], ir.Break)):
            self.blocks[-1].extend(body[: len(body) - inline.returns])
        else:
            self.emit(ir.While(TRUE, (*body, ir.Break(line=self.line)), line=self.line))
        self.unit.active.pop()
        self.impure = self.impure or frame.impure
        self.copy_back(copies)
        return inline.result

    def share(self, outer: Bodies) -> None:
        """Write into the text of another function, with names in its scope."""
        self.taken, self._counts, self.known = outer.taken, outer._counts, outer.known
        self.blocks, self.prologue, self.extra = outer.blocks, outer.prologue, outer.extra
        self.line, self.span = outer.line, outer.span

    def receive(
        self, parameter: s.FunctionParam, kind: CType, operand: CallOperand, outer: Bodies, copies: list[Copy]
    ) -> None:
        """Bind a parameter of an inlined function."""
        if isinstance(operand.value, RawArray) and isinstance(kind, RawOf):
            self.bind(parameter.name, operand.value, parameter.span)
            return
        args = outer.argument(kind, operand, copies)
        with self.block() as bound:
            names = self._bind_parameter(parameter, kind, tuple(type_of(arg) for arg in args))
        for name, arg in zip(names, args, strict=True):
            self.emit(ir.Declare(name, type_of(arg), arg, line=self.line))
        self.blocks[-1].extend(bound)

    def hand_back(self, value: Expr | None) -> None:
        """A return from an inlined function."""
        inline = self.inline
        assert inline is not None, "other functions return by a statement of the IR"
        inline.returns += 1
        if value is not None and inline.result is not None:
            self.set(inline.result, value)
        if self.contexts:
            inline.flag = inline.flag or ir.Local(self.fresh("_returned"), BOOL)
            self.set(inline.flag, TRUE)
        self.emit(ir.Break(line=self.line))

    def repeat(self, loop: ir.While) -> None:
        """Emit a loop; one that a return may have left is left further on."""
        self.emit(loop)
        if self.inline is not None and self.inline.flag is not None:
            self.emit(ir.If(self.inline.flag, (ir.Break(line=loop.line),), line=loop.line))

    @property
    def contexts(self) -> list[Context]:
        """The enclosing loops and switches, innermost last."""
        found: list[Context] = self.__dict__.setdefault("_contexts", [])
        return found

    # --- members ---

    def _see_fields(self, owner: Record, this: Symbol, symbols: dict[str, Symbol]) -> None:
        """Let a member use the fields of its struct by their names."""
        assert isinstance(this, (Variable, StructAddress)), "the struct of a method is a value or in memory"
        place = replace(this, pointer=False) if isinstance(this, StructAddress) else this
        self.member = (owner, place)
        symbols.update({name: self.part_of(place, name) for name in owner.members})

    def _start(self, initials: tuple[s.Initial, ...], owner: Record, symbols: dict[str, Symbol]) -> Variable:
        """The struct that a constructor makes, with what its fields have before the body. Raises UnknownMember."""
        this = Variable(self.fresh("_made"), owner.struct)
        self.emit(ir.Declare(this.name, owner.struct))
        self.symbols[-1][THIS] = this
        outer = self.symbols.pop()  # parameters, which what fields are given sees first
        self._see_fields(owner, this, symbols)
        self.symbols.append(outer)
        given = {each.name: each for each in initials}
        for each in initials:
            if each.name in owner.types and owner.types[each.name] == owner.struct:  # another constructor does it
                self.store(this, self.made(owner.struct, each.args, each.span), each.span, wanted=False)
                return this
            if each.name not in owner.members:
                known = f"its fields are {', '.join(owner.members)}"
                raise UnknownMember(f"struct '{owner.struct.name}'", each.name, known).at(each.span)
        for name, member in owner.members.items():
            place = self.part_of(this, name)
            if name in given:
                span = given[name].span
                self.store(place, self.made(member.type, given[name].args, span), span, wanted=False)
            elif member.default is not None:
                start = BracedValues()
                self.append(start, member.default, member.type)
                self.store(place, start[0], member.default.span, wanted=False)
            elif (value := self.initially(member.type, self.span)) is not None:
                self.store(place, value, self.span, wanted=False)
        return this

    def _bind_parameter(self, parameter: s.FunctionParam, kind: CType, types: tuple[Type, ...]) -> list[str]:
        """Bind a parameter; the names of those of the IR that hold it, of which a struct in memory has several."""
        name = self.fresh(parameter.name or "_unused")
        reason = f"constant '{parameter.name}'" if parameter.type.const else ""
        match kind, types:
            case PointerTo(element=Struct() as struct, reference=reference), _:
                names = [self.fresh(f"{name}_{part}") for part, _ in struct.fields]
                pointers = tuple(ir.Local(part, type_) for part, type_ in zip(names, types, strict=True))
                is_pointer = not reference or parameter.name == THIS
                found: Symbol = StructAddress(pointers, struct, reason, is_pointer)
            case PointerTo(reference=True, element=DType() as element), (type_,):
                names, found = [name], Address(ir.Local(name, type_), element, reason)
            case PointerTo(element=DType() as element), (Pointer() as type_,):
                names, found = [name], PointerVariable(name, element, reason, type_)
            case DType(), _ if parameter.name in self.unit.addressed:
                memory = self.fresh(f"{name}_ref")
                names, found = [name], self.in_memory(memory, kind, ir.Local(name, kind), reason)
            case DType() | Struct(), _:
                names, found = [name], Variable(name, kind, reason)
            case _:
                raise AssertionError(f"no parameter is {kind}")
        if parameter.name:
            self.bind(parameter.name, found, parameter.span)
        return names

    def result_type(self) -> Type | None:
        """The type of the function's result, None if it returns nothing."""
        match self.result:
            case PointerTo(element=Struct(name=name)):
                cure = "return the struct"
                raise NotSupported(f"a function that returns a pointer to struct {name} is", cure).at(self.span)
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
                null = ir.Local(self.fresh("_null"), result)
                return [ir.Declare(null.name, result), ir.Return(null)]

    def _copied(self, names: list[str], types: tuple[Type, ...], body: list[ir.Stmt]) -> list[str]:
        """Parameter names; one that the body assigns to is copied to a local first."""
        changed = assigned(body)
        final: list[str] = []
        copies: list[ir.Stmt] = []
        for name, type_ in zip(names, types, strict=True):
            given = self.fresh(f"{name}_in") if name in changed else name
            final.append(given)
            if given != name:
                copies.append(ir.Declare(name, type_, ir.Local(given, type_)))
        body[:0] = copies
        return final


def assigned(body: list[ir.Stmt] | tuple[ir.Stmt, ...]) -> set[str]:
    """The locals that statements assign to, apart from declarations."""
    found: set[str] = set()
    pending = list(body)
    while pending:
        match pending.pop():
            case ir.Assign(name=name) | ir.SetField(name=name) | ir.Atomic(result=name) | ir.CallStatement(result=name):
                found.add(name)
            case ir.If(then=then, orelse=orelse):
                pending += [*then, *orelse]
            case ir.While(body=inner, step=step):
                pending += [*inner, *step]
    return found


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
