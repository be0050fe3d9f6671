"""Device functions: overloads, template arguments from the types of a call, and their instances."""

from __future__ import annotations

from fusec.base.diagnostics import counted, with_article
from fusec.base.dtypes import DType, real_type
from fusec.base.source import Span
from fusec.errors.base import FusecError
from fusec.errors.language import ArgumentCount, Recursion, TemplateMismatch, TooLarge
from fusec.frontends.c import syntax as s
from fusec.frontends.c.c_types import CType, PointerTo, RawOf, show
from fusec.frontends.c.context import MAX_FUNCTIONS, Bindings, CallOperand, Candidate, Record, Template, TranslationUnit
from fusec.frontends.c.frame import FunctionFrame, SubstitutionError
from fusec.frontends.c.lvalues import LvalueLowering
from fusec.frontends.c.symbols import Address, FieldPlace, RawArray, StructAddress, Variable
from fusec.frontends.c.type_resolution import TypeResolver, without_void
from fusec.ir.expr import Const, Pointer, Struct, Type, const, type_of

Functions = list[s.FunctionDef]


class DeductionError(Exception):
    """Template parameters that do not follow from a call; the text gives the reason."""


class Overloads:
    """Finds and instantiates device functions."""

    def __init__(self, frame: FunctionFrame, lvalues: LvalueLowering) -> None:
        self.frame, self.lvalues = frame, lvalues
        self.storage, self.types = lvalues.storage, lvalues.types

    def operands(self, functions: Functions, args: tuple[s.Expression, ...], first: int = 0) -> list[CallOperand]:
        """Arguments, lowered once, before the overload is known: values, addresses, or places for references."""
        return [self._operand(functions, at, arg) for at, arg in enumerate(args, first)]

    def _operand(self, functions: Functions, at: int, node: s.Expression) -> CallOperand:
        if isinstance(node, s.Name) and isinstance(array := self.frame.find(node.name), RawArray):
            return CallOperand(array, False, node.span)
        params = [param for function in functions for param in _params(function)[at : at + 1]]
        takes_address = any("*" in param.type.marks for param in params) and self.lvalues.is_pointer(node)
        if any("&" in param.type.marks and not param.type.const for param in params) and not takes_address:
            return CallOperand(self.lvalues.place(node, "a reference parameter"), False, node.span)
        watched = any(
            _writes(function) and _refers(param) for function in functions for param in _params(function)[at : at + 1]
        )
        if watched and self._names_place(node):
            return CallOperand(self.lvalues.place(node), False, node.span)
        if not self.lvalues.is_pointer(node):
            return CallOperand(self.frame.value(node), False, node.span)
        match node:
            case s.Prefix(op="&", operand=s.Name() | s.Attribute() as operand):
                found = self.storage.struct_place(operand) or (
                    self.lvalues.place(operand) if isinstance(operand, s.Attribute) else self.frame.find(operand.name)
                )
                if isinstance(found, (Variable, FieldPlace, StructAddress)):
                    return CallOperand(found, True, node.span)
            case s.Name() if (place := self.storage.pointed(node)) is not None:
                return CallOperand(place, True, node.span)
        return CallOperand(self.lvalues.address(node), True, node.span)

    def _names_place(self, node: s.Expression) -> bool:
        """True for an expression that is a place already, so that a reference to a constant can refer to it."""
        match node:
            case s.Name():
                return isinstance(self.frame.find(node.name), (Variable, Address, FieldPlace, StructAddress))
            case s.Index(value=base):
                return not isinstance(base, s.CallNode)
            case s.Prefix(op="*"):
                return True
        return False

    def choose(self, name: str, node: s.Node, operands: list[CallOperand], functions: Functions) -> Candidate:
        """The overload that fits a call best. Raises ArgumentCount or TemplateMismatch."""
        fitting = [function for function in functions if len(_params(function)) == len(operands)]
        if not fitting:
            counts = " or ".join(str(count) for count in sorted({len(_params(function)) for function in functions}))
            raise ArgumentCount(name, counts, len(operands), "device functions have no default arguments").at(node.span)
        written = node.callee.args if isinstance(node, s.CallNode) and isinstance(node.callee, s.TemplateId) else ()
        explicit = [self.types.type_argument(arg) for arg in written]
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

    def _candidate(self, function: s.FunctionDef, explicit: list[CType | Const], given: list[CallOperand]) -> Candidate:
        templates = function.templates or ()
        if len(explicit) > len(templates):
            raise DeductionError(f"it has {counted(len(templates), 'template parameter')}")
        bindings: Bindings = {}
        for template, written in zip(templates, explicit, strict=False):
            bindings[template.name] = self._template_argument(template, written, bindings)
        free = {param.name for param in templates if param.name not in bindings}
        for parameter, arg in zip(_params(function), given, strict=True):
            _deduce(parameter.type, arg, free, bindings, self.frame.unit)
        for param in templates:
            if param.name not in bindings:
                if param.default is None:
                    raise DeductionError(f"no argument determines '{param.name}'")
                default = self._types_of(function, bindings).type_argument(param.default)
                bindings[param.name] = self._template_argument(param, default, bindings)
        types = self._types_of(function, bindings)
        params = tuple(
            _parameter(types, parameter, _aliased(arg, given) if _writes(function) else None)
            for parameter, arg in zip(_params(function), given, strict=True)
        )
        types.resolve(function.result)  # a result that does not exist takes the overload out
        cost = sum(self._mismatch(param, arg) for param, arg in zip(params, given, strict=True))
        return Candidate(function, bindings, params, 2 * cost + bool(templates))

    def _types_of(self, function: s.FunctionDef, bindings: Bindings) -> TypeResolver:
        """The types that a function sees."""
        return TypeResolver(self.frame.within(bindings, function))

    def _mismatch(self, param: CType, given: CallOperand) -> int:
        """How far an argument is off a parameter: below 100 it can be converted."""
        match param:
            case PointerTo(element=element, reference=reference):
                return (0 if element == given.type else 100) + (0 if given.pointer != reference else 1000)
            case RawOf():
                return 0 if param == given.type else 1000
            case DType() | Struct():
                if given.pointer or isinstance(given.type, RawOf):
                    return 1000
                if param == given.type:
                    return 0
                if isinstance(param, DType) and isinstance(given.type, DType):
                    return 1 if param.kind == given.type.kind else 2
                return 10 if isinstance(param, Struct) and self.converting(param) else 1000
            case _:
                return 1000

    def converting(self, struct: Struct) -> Functions:
        """The constructors that create a struct from one value."""
        return [function for function in self.frame.unit.record(struct).constructors if len(_params(function)) == 1]

    def _template_argument(self, param: s.TemplateParam, arg: CType | Const, bindings: Bindings) -> CType | Const:
        """An argument for a template parameter; a value gets the declared type. Raises DeductionError."""
        if (param.type is not None) != isinstance(arg, Const):
            raise DeductionError(f"'{param.name}' is a {'type' if param.type is None else 'value'}")
        if param.type is None or not isinstance(arg, Const):
            return arg
        kind = TypeResolver(self.frame.within(bindings)).resolve(param.type)
        return const(arg.value.item(), arg.type if not isinstance(kind, DType) else kind)

    def instance(self, chosen: Candidate, types: tuple[tuple[Type, ...], ...], span: Span) -> Template:
        """The function for these types, lowered at its first use. Raises Recursion or TooLarge.

        types: for each parameter those of the arguments in the IR, of which a struct in memory has several.
        """
        function = chosen.function
        key = (id(function), tuple(chosen.bindings.items()), types)
        found = self.frame.unit.instances.get(key)
        if found is not None:
            return found
        if key in self.frame.unit.active:
            raise Recursion(function.name).at(span)
        if len(self.frame.unit.instances) + len(self.frame.unit.active) >= MAX_FUNCTIONS:
            raise TooLarge(MAX_FUNCTIONS, "functions").at(span)
        self.frame.unit.active.append(key)
        suffix = "".join(f"_{_shown(arg)}" for arg in chosen.bindings.values())
        name = self.frame.unit.fresh(f"{function.name}{suffix}".replace(" ", "_").replace("-", "m"))
        found = self.frame.within(chosen.bindings, function).instantiate(chosen, name, types)
        self.frame.unit.active.pop()
        self.frame.unit.instances[key] = found
        return found


def _parameter(types: TypeResolver, parameter: s.FunctionParam, watched: DType | Struct | None) -> CType:
    """The type of a parameter; a reference to a constant is as good as a value.

    watched: the type of an argument that the function might change by another way; then the reference stays one.
    """
    found = types.resolve(parameter.type)
    if isinstance(found, PointerTo) and found.reference and found.const and found.element != watched:
        return found.element
    return found


def _params(function: s.FunctionDef) -> tuple[s.FunctionParam, ...]:
    return without_void(function.params)


def _refers(param: s.FunctionParam) -> bool:
    """True for a reference to a constant."""
    return "&" in param.type.marks and param.type.const


def _writes(function: s.FunctionDef) -> bool:
    """True if a function may write through a parameter."""
    return any(param.type.marks and not param.type.const for param in _params(function))


def _aliased(arg: CallOperand, given: list[CallOperand]) -> DType | Struct | None:
    """The type of an argument in memory, or of a variable that is given twice; None for what nothing else reaches."""
    match arg:
        case CallOperand(value=Address(pointer=pointer, element=element), pointer=False):
            stored = type_of(pointer)
            return element if isinstance(stored, Pointer) and stored.element == element else None
        case CallOperand(value=Variable(type=type_, const="") as variable, pointer=False):
            return type_ if sum(each.value is variable for each in given) > 1 else None
        case CallOperand(value=StructAddress(type=type_) as place, pointer=False):
            return type_ if sum(each.value == place for each in given) > 1 else None
    return None


def _deduce(
    pattern: s.Qualified, given: CallOperand, free: set[str], bindings: Bindings, unit: TranslationUnit
) -> None:
    """Bind the template parameters that a parameter's type mentions. Raises DeductionError if two uses disagree."""
    found: dict[str, Type | CType | Const]
    match pattern.base:
        case s.TypeName(name=name, args=()) if name in free:
            found = {name: given.type}
        case s.TypeName(name="complex", args=(s.Qualified(base=s.TypeName(name=name, args=())),)) if name in free:
            if not isinstance(given.type, DType) or not given.type.is_complex:
                raise DeductionError(f"{show(given.type)} is not complex")
            found = {name: real_type(given.type)}
        case s.TypeName(name=template, args=args) if template in unit.templates:
            found = _template_arguments(template, args, given, free, unit)
        case _:
            return
    if found and ("*" in pattern.marks) != given.pointer:
        shown = pattern.span.text
        raise DeductionError(f"a {'pointer' if '*' in pattern.marks else 'value'} is needed for '{shown}'")
    for name, arg in found.items():
        assert not isinstance(arg, Pointer), "pointers are given by what they point to"
        known = bindings.setdefault(name, arg)
        if known != arg:
            raise DeductionError(f"'{name}' would be both {_shown(known)} and {_shown(arg)}")


def _template_arguments(
    template: str, args: tuple[s.TypeArg, ...], given: CallOperand, free: set[str], unit: TranslationUnit
) -> dict[str, Type | CType | Const]:
    """The parameters that the arguments of a struct template mention. Raises DeductionError."""
    record: Record | None = unit.records.get(given.type) if isinstance(given.type, Struct) else None
    if record is None or record.template != template:
        raise DeductionError(f"{show(given.type)} is not {with_article(template)}")
    found: dict[str, Type | CType | Const] = {}
    for pattern, arg in zip(args, record.args, strict=False):
        match pattern:
            case s.Qualified(base=s.TypeName(name=name, args=())) | s.Name(name=name) if name in free:
                found[name] = arg
    return found


def _shown(arg: CType | Const) -> str:
    """A template argument in the words of an error message."""
    return str(arg.value) if isinstance(arg, Const) else show(arg)
