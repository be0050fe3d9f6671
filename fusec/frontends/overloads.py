"""Device functions: overloads, template arguments from the types of a call, and their instances."""

from __future__ import annotations

from typing import Self

from fusec.dtypes import DType, real_type
from fusec.errors.base import FusecError
from fusec.errors.language import ArgumentCount, Recursion, TemplateMismatch, TooLarge
from fusec.frontends import syntax as s
from fusec.frontends.c_types import CType, PointerTo, show
from fusec.frontends.effects import Effects
from fusec.frontends.frame import SubstitutionError
from fusec.frontends.symbols import Address, FieldPlace, Place, Value, Variable
from fusec.frontends.unit import MAX_FUNCTIONS, Template
from fusec.ir.expr import Const, Expr, Pointer, Struct, Type, const, type_of
from fusec.records import dataclass
from fusec.source import Span

Bindings = dict[str, CType | Const]


class DeductionError(Exception):
    """Template parameters that do not follow from a call; the text says why."""


@dataclass(frozen=True)
class Operand:
    """An argument: a value, or a place that is meant by its address (`pointer`) or as a reference."""

    value: Expr | Place
    pointer: bool
    span: Span

    @property
    def type(self) -> Type:
        """The type of the value, or of what is in the place."""
        match self.value:
            case Address(element=element):
                return element
            case Variable(type=type_) | FieldPlace(type=type_):
                return type_
            case value:
                return type_of(value)


@dataclass(frozen=True)
class Candidate:
    """An overload that could take the arguments: its template parameters, parameter types and how far it is off."""

    function: s.FunctionDef
    bindings: Bindings
    params: tuple[CType, ...]
    cost: int


class Overloads(Effects):
    """Finds and instantiates device functions."""

    def within(self, bindings: Bindings) -> Self:
        """A frame that sees the preamble and template parameters, and nothing of this function."""
        frame = type(self)(self.unit, set(self.unit.functions))
        for name, value in bindings.items():
            if isinstance(value, Const):
                frame.symbols[0][name] = Value(value)
            else:
                frame.types[0][name] = value
        return frame

    def operand(self, name: str, at: int, node: s.Expression) -> Operand:
        """An argument, lowered once, before the overload is known: a value, an address, or a place to refer to."""
        by_reference = any(
            "&" in param.type.marks and not param.type.const
            for function in self.unit.functions[name]
            for param in _params(function)[at : at + 1]
        )
        if by_reference:
            return Operand(self.place(node, "a reference parameter"), False, node.span)
        watched = any(
            _writes(function) and _refers(param)
            for function in self.unit.functions[name]
            for param in _params(function)[at : at + 1]
        )
        if watched and self._names_place(node):
            return Operand(self.place(node), False, node.span)
        if not self.is_pointer(node):
            return Operand(self.value(node), False, node.span)
        if isinstance(node, s.Prefix) and node.op == "&" and isinstance(node.operand, s.Name):
            found = self.find(node.operand.name)
            if isinstance(found, Variable):
                return Operand(found, True, node.span)
        return Operand(self.address(node), True, node.span)

    def _names_place(self, node: s.Expression) -> bool:
        """True for an expression that is a place already, so that a reference to a constant can refer to it."""
        match node:
            case s.Name():
                return isinstance(self.find(node.name), (Variable, Address, FieldPlace))
            case s.Index(value=base):
                return not isinstance(base, s.Call)
            case s.Prefix(op="*"):
                return True
        return False

    def choose(self, name: str, node: s.Call, operands: list[Operand]) -> Candidate:
        """The overload that fits a call best. Raises ArgumentCount or TemplateMismatch."""
        functions = self.unit.functions[name]
        fitting = [function for function in functions if len(_params(function)) == len(operands)]
        if not fitting:
            counts = " or ".join(str(count) for count in sorted({len(_params(function)) for function in functions}))
            raise ArgumentCount(name, counts, len(operands), "device functions have no default arguments").at(node.span)
        explicit = [self._type_arg(arg) for arg in node.callee.args] if isinstance(node.callee, s.Instance) else []
        found: list[Candidate] = []
        problem: FusecError | None = None
        for function in fitting:
            try:
                found.append(self._candidate(function, explicit, operands))
            except SubstitutionError:
                continue
            except DeductionError as error:
                problem = TemplateMismatch(name, str(error)).at(node.span)
        if not found:
            raise problem or TemplateMismatch(name, "no overload takes these types").at(node.span)
        return min(found, key=lambda candidate: candidate.cost)

    def _candidate(self, function: s.FunctionDef, explicit: list[CType | Const], given: list[Operand]) -> Candidate:
        templates = function.templates or ()
        if len(explicit) > len(templates):
            raise DeductionError(f"it has {len(templates)} template parameter(s)")
        bindings: Bindings = {}
        for template, written in zip(templates, explicit, strict=False):
            bindings[template.name] = self._template_argument(template, written, bindings)
        free = {param.name for param in templates if param.name not in bindings}
        for parameter, arg in zip(_params(function), given, strict=True):
            _deduce(parameter.type, arg, free, bindings)
        for param in templates:
            if param.name not in bindings:
                if param.default is None:
                    raise DeductionError(f"nothing tells what '{param.name}' is")
                default = self.within(bindings)._type_arg(param.default)
                bindings[param.name] = self._template_argument(param, default, bindings)
        frame = self.within(bindings)
        params = tuple(
            frame.parameter(parameter, _aliased(arg, given) if _writes(function) else None)
            for parameter, arg in zip(_params(function), given, strict=True)
        )
        frame.resolve(function.result)  # a result that does not exist takes the overload out
        cost = sum(_mismatch(param, arg) for param, arg in zip(params, given, strict=True))
        return Candidate(function, bindings, params, 2 * cost + bool(templates))

    def _template_argument(self, param: s.TemplateParam, arg: CType | Const, bindings: Bindings) -> CType | Const:
        """An argument for a template parameter; a value gets the declared type. Raises DeductionError."""
        if (param.type is not None) != isinstance(arg, Const):
            raise DeductionError(f"'{param.name}' is a {'type' if param.type is None else 'value'}")
        if param.type is None or not isinstance(arg, Const):
            return arg
        kind = self.within(bindings).resolve(param.type)
        return const(arg.value.item(), arg.type if not isinstance(kind, DType) else kind)

    def parameter(self, parameter: s.Parameter, watched: DType | None) -> CType:
        """The type of a parameter; a reference to a constant is as good as a value.

        watched: the type of an argument that the function might change by another way; then the reference stays one.
        """
        found = self.resolve(parameter.type)
        if isinstance(found, PointerTo) and found.reference and found.const and found.element != watched:
            return found.element
        return found

    def instance(self, chosen: Candidate, types: tuple[Type, ...], span: Span) -> Template:
        """The function for these types, lowered when first asked for. Raises Recursion or TooLarge."""
        function = chosen.function
        key = (id(function), tuple(chosen.bindings.items()), types)
        found = self.unit.instances.get(key)
        if found is not None:
            return found
        if key in self.unit.active:
            raise Recursion(function.name).at(span)
        if len(self.unit.instances) + len(self.unit.active) >= MAX_FUNCTIONS:
            raise TooLarge(MAX_FUNCTIONS, "functions").at(span)
        self.unit.active.append(key)
        suffix = "".join(f"_{_shown(arg)}" for arg in chosen.bindings.values())
        name = self.unit.fresh(f"{function.name}{suffix}".replace(" ", "_").replace("-", "m"))
        found = self.within(chosen.bindings).function(function, name, chosen.params, types)
        self.unit.active.pop()
        self.unit.instances[key] = found
        return found

    def function(
        self, function: s.FunctionDef, name: str, params: tuple[CType, ...], types: tuple[Type, ...]
    ) -> Template:
        """Lower a function for the types of its arguments; the layer of statements does."""
        raise NotImplementedError


def _params(function: s.FunctionDef) -> tuple[s.Parameter, ...]:
    """The parameters; ``(void)`` means none."""
    match function.params:
        case (s.Parameter(name="", type=s.Qualified(base=s.TypeName(name="void"), marks="")),):
            return ()
    return function.params


def _refers(param: s.Parameter) -> bool:
    """True for a reference to a constant."""
    return "&" in param.type.marks and param.type.const


def _writes(function: s.FunctionDef) -> bool:
    """True if a function may write through a parameter."""
    return any(param.type.marks and not param.type.const for param in _params(function))


def _aliased(arg: Operand, given: list[Operand]) -> DType | None:
    """The type of an argument in memory, or of a variable that is given twice; None for what nothing else reaches."""
    match arg:
        case Operand(value=Address(pointer=pointer, element=element), pointer=False):
            stored = type_of(pointer)
            return element if isinstance(stored, Pointer) and stored.element == element else None
        case Operand(value=Variable(type=DType() as dtype, const="") as variable, pointer=False):
            return dtype if sum(each.value is variable for each in given) > 1 else None
    return None


def _deduce(pattern: s.Qualified, given: Operand, free: set[str], bindings: Bindings) -> None:
    """Bind the template parameter that a parameter's type mentions. Raises DeductionError if two uses disagree."""
    match pattern.base:
        case s.TypeName(name=name, args=()) if name in free:
            found: Type = given.type
        case s.TypeName(name="complex", args=(s.Qualified(base=s.TypeName(name=name, args=())),)) if name in free:
            if not isinstance(given.type, DType) or not given.type.is_complex:
                raise DeductionError(f"{show(given.type)} is not complex")
            found = real_type(given.type)
        case _:
            return
    assert not isinstance(found, Pointer), "pointers are given by what they point to"
    if ("*" in pattern.marks) != given.pointer:
        raise DeductionError(f"a {'pointer' if '*' in pattern.marks else 'value'} is needed for '{pattern.span.text}'")
    known = bindings.setdefault(name, found)
    if known != found:
        raise DeductionError(f"'{name}' would be both {_shown(known)} and {show(found)}")


def _shown(arg: CType | Const) -> str:
    """A template argument in the words of an error message."""
    return str(arg.value) if isinstance(arg, Const) else show(arg)


def _mismatch(param: CType, given: Operand) -> int:
    match param:
        case PointerTo(element=element, reference=reference):
            return (0 if element == given.type else 100) + (0 if given.pointer != reference else 1000)
        case DType() | Struct():
            if given.pointer:
                return 1000
            if param == given.type:
                return 0
            same_kind = isinstance(param, DType) and isinstance(given.type, DType) and param.kind == given.type.kind
            return 1 if same_kind else 2
        case _:
            return 1000


__all__ = ["Bindings", "Candidate", "Operand", "Overloads"]
