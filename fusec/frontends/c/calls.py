"""Calls: built-in functions, methods, and device functions of the preamble with their templates."""

from __future__ import annotations

from fusec.base.diagnostics import did_you_mean, with_article
from fusec.base.dtypes import FLOAT32, FLOAT64, INT32, INT64, DType, real_type
from fusec.base.source import Span
from fusec.errors.language import (
    ArgumentCount,
    CannotConvert,
    NotAValue,
    NotSupported,
    UnknownMember,
)
from fusec.frontends.c import syntax as s
from fusec.frontends.c.arithmetic import convert, dtype_of
from fusec.frontends.c.c_types import VECTORS, CType, PointerTo, RawOf, show
from fusec.frontends.c.context import CallOperand, Record, Template
from fusec.frontends.c.effects import ATOMICS, THROUGH_POINTERS, Effects
from fusec.frontends.c.folding import fold
from fusec.frontends.c.frame import FunctionFrame
from fusec.frontends.c.functions import BUILTINS
from fusec.frontends.c.lvalues import LvalueLowering
from fusec.frontends.c.overloads import Functions, Overloads
from fusec.frontends.c.storage import target_type, why_constant
from fusec.frontends.c.symbols import Address, FieldPlace, Indexer, Place, RawArray, StructAddress, Variable
from fusec.frontends.c.unknown_names import unknown_function
from fusec.frontends.lowering import CallSite
from fusec.ir.expr import Expr, Pointer, Struct, apply, const, scalar_type, type_of
from fusec.ir.loops import Call, CallStatement, DeclareArray, Load, LocalArray, Make, Query
from fusec.ir.reductions import parts_of

Copy = tuple[Variable | FieldPlace, tuple[LocalArray, ...]]

SHAPES = dict.fromkeys(
    ("size", "shape", "strides", "ndim"),
    "this is one element; declare the parameter raw to get its shape, or get that of all elements from _ind",
)


class CallLowering:
    """Lowers calls."""

    def __init__(self, frame: FunctionFrame, lvalues: LvalueLowering) -> None:
        self.frame, self.lvalues, self.storage, self.types = frame, lvalues, lvalues.storage, lvalues.types
        self.effects, self.overloads = Effects(frame, lvalues), Overloads(frame, lvalues)
        frame.call, frame.implicit = self.call, self.implicit

    def call(self, node: s.CallNode, wanted: bool = True) -> Expr | None:
        """A call; None if it returns nothing. wanted: the result is used."""
        match node.callee:
            case s.Attribute() as callee:
                return self._method(callee, node, wanted)
            case s.Name(name=name) | s.TemplateId(name=name):
                return self._named_call(name, node, wanted)
            case s.Trait() as trait if not node.args:
                return self.types.trait(trait)
            case _:
                raise NotAValue("this", "only functions are called").at(node.callee.span)

    def _named_call(self, name: str, node: s.CallNode, wanted: bool) -> Expr | None:
        if self.frame.member is not None and name in self.frame.member[0].methods:
            return self._member_call(*self.frame.member, node, wanted)
        functions = (
            self.frame.member[0].statics.get(name) if self.frame.member else None
        ) or self.frame.unit.functions.get(name)
        if functions:
            return self._device(name, node, self.overloads.operands(functions, node.args), functions, wanted)
        found = self.frame.find(name)
        if found is not None:
            raise NotAValue(f"calling '{name}'", f"'{name}' is not a function").at(node.callee.span)
        if name in ATOMICS:
            return self.effects.atomic(name, node, wanted)
        if name in THROUGH_POINTERS or (name.endswith("f") and name.removesuffix("f") in THROUGH_POINTERS):
            return self.effects.through_pointers(name, node)
        return self._builtin(name, node)

    def _builtin(self, name: str, node: s.CallNode) -> Expr:
        if name in ("nan", "nanf"):
            return const(float("nan"), FLOAT64 if name == "nan" else FLOAT32)
        if name == "__ldg" and len(node.args) == 1:
            return self.storage.load(self.lvalues.address(node.args[0]))
        if name.startswith("make_") and name[5:] in VECTORS:
            return self._vector(name, node)
        found = BUILTINS.get(name)
        if found is None:
            raise unknown_function(name, {*ATOMICS, *self.frame.unit.functions}, node.callee.span)
        if len(node.args) != found.arity:
            raise ArgumentCount(name, str(found.arity), len(node.args)).at(node.span)
        args = [self.frame.value(arg) for arg in node.args]
        if isinstance(node.callee, s.TemplateId) and node.callee.args:
            kind = node.callee.args[0]
            if isinstance(kind, s.Qualified):
                args = [convert(arg, self.types.scalar(kind), node.span) for arg in args]
        return self.frame.bounded(found.make(CallSite(name, node.span), args))

    def _vector(self, name: str, node: s.CallNode) -> Expr:
        """CUDA's ``make_float4(x, y, z, w)``, of its own type or the preamble's of that name."""
        found = self.frame.unit.types.get(name[5:], VECTORS[name[5:]])
        if not isinstance(found, Struct) or len(found.fields) != len(VECTORS[name[5:]].fields):
            found = VECTORS[name[5:]]
        if len(node.args) != len(found.fields):
            raise ArgumentCount(name, str(len(found.fields)), len(node.args)).at(node.span)
        values = [self.frame.value(arg) for arg in node.args]
        pairs = zip(values, found.fields, node.args, strict=True)
        return Make(tuple(convert(value, dtype, arg.span) for value, (_, dtype), arg in pairs), found)

    # --- methods ---

    def _method(self, callee: s.Attribute, node: s.CallNode, wanted: bool) -> Expr | None:
        place = self.storage.owner(callee)
        if place is not None:
            return self._struct_method(place, callee, node, wanted)
        if isinstance(callee.value, s.Name):
            match self.frame.lookup(callee.value):
                case RawArray() as array:
                    return self._array_method(array.name, callee, node, ("size", "shape", "strides"))
                case Indexer(size=size):
                    found = self._array_method("", callee, node, ("size", "shape", "get"))
                    return found if size is None else size
        if callee.name in ("real", "imag") and len(node.args) == 1:
            self._set_part(callee, node)
            return None
        value = self.frame.value(callee.value)
        if isinstance(type_of(value), Struct):
            local = self.frame.temporary(value)
            assert isinstance(local.type, Struct), "it has the type of its value"
            return self._struct_method(Variable(local.name, local.type), callee, node, wanted)
        given = dtype_of(value, callee.value.span, f".{callee.name}()")
        if callee.name in ("real", "imag") and not node.args and given.is_complex:
            return apply(callee.name, value)
        cure = SHAPES.get(callee.name, "only complex values have .real() and .imag()")
        raise UnknownMember(f"{with_article(given.name)} value", f"{callee.name}()", cure).at(callee.span)

    def _struct_method(self, place: Place, callee: s.Attribute, node: s.CallNode, wanted: bool) -> Expr | None:
        assert isinstance(place, (Variable, FieldPlace, StructAddress)), "structs have methods"
        assert isinstance(place.type, Struct), "structs have methods"
        record = self.frame.unit.record(place.type)
        if callee.name in record.methods:
            return self._member_call(record, place, node, wanted)
        if functions := record.statics.get(callee.name):
            return self._device(callee.name, node, self.overloads.operands(functions, node.args), functions, wanted)
        known = ", ".join(f"{name}()" for name in (*record.methods, *record.statics)) or "no functions"
        raise UnknownMember(f"struct '{record.struct.name}'", f"{callee.name}()", f"it has {known}").at(callee.span)

    def _member_call(self, record: Record, place: Place, node: s.CallNode, wanted: bool) -> Expr | None:
        assert isinstance(node.callee, (s.Attribute, s.Name, s.TemplateId)), "methods have names"
        name = node.callee.name
        functions = record.methods[name]
        operands = self.overloads.operands(functions, node.args, 1)
        return self._device(name, node, [CallOperand(place, False, node.span), *operands], functions, wanted)

    def _array_method(self, array: str, callee: s.Attribute, node: s.CallNode, methods: tuple[str, ...]) -> Expr:
        owner = f"raw array '{array}'" if array else "'_ind'"
        if callee.name not in methods:
            known = (
                did_you_mean(callee.name, methods) or f"it has {', '.join(f'{name}()' for name in methods)} and ndim"
            )
            raise UnknownMember(owner, f"{callee.name}()", known).at(callee.span)
        if node.args:
            raise ArgumentCount(callee.name, "0", len(node.args)).at(node.span)
        if callee.name != "size":
            raise NotAValue(f"'{callee.name}()'", f"take one axis: .{callee.name}()[0]").at(node.span)
        return Query(array, "size", None, INT64)

    def quantity(self, node: s.Index) -> Expr | None:
        """``x.shape()[d]``, ``x.strides()[d]`` and ``_ind.get()[d]``; None if the node is something else."""
        match node.value:
            case s.CallNode(callee=s.Attribute(value=s.Name() as owner, name=name), args=()):
                found = self.frame.find(owner.name)
            case _:
                return None
        if isinstance(found, RawArray) and name in ("shape", "strides"):
            return Query(found.name, "shape" if name == "shape" else "stride", self.lvalues.index(node.index), INT64)
        if isinstance(found, Indexer) and name in ("get", "shape"):
            axis = self.lvalues.index(node.index)
            if found.axes is not None:
                axis = self._own_axis(found.axes, owner.name, axis, node.index.span)
            return Query("", "coordinate" if name == "get" else "shape", axis, INT64)
        return None

    def _own_axis(self, axes: tuple[int, ...], owner: str, axis: Expr, span: Span) -> Expr:
        """The axis of the space that an axis of some of them is. Raises NotAValue."""
        folded = fold(axis, {})
        if folded is None or not 0 <= int(folded.value) < len(axes):
            several = f"name one of its {len(axes)} axes by number: 0 to {len(axes) - 1}"
            cure = several if len(axes) > 1 else "its only axis is 0" if axes else "it has no axes"
            raise NotAValue(f"an axis of '{owner}'", cure).at(span)
        return const(axes[int(folded.value)], INT64)

    def _set_part(self, callee: s.Attribute, node: s.CallNode) -> None:
        """``z.real(x)`` and ``z.imag(x)``."""
        place = self.lvalues.place(callee.value, f"'.{callee.name}(...)'")
        old = self.storage.load(place)
        given = dtype_of(old, callee.value.span, callee.name)
        if not given.is_complex:
            raise UnknownMember(
                f"{with_article(given.name)} value", f"{callee.name}()", "only complex values have parts"
            ).at(callee.span)
        part = convert(self.frame.value(node.args[0]), real_type(given), node.args[0].span)
        real, imag = (part, apply("imag", old)) if callee.name == "real" else (apply("real", old), part)
        self.storage.store(place, apply("complex", real, imag), node.span, wanted=False)

    # --- device functions ---

    def _device(
        self, name: str, node: s.Node, operands: list[CallOperand], functions: Functions, wanted: bool
    ) -> Expr | None:
        chosen = self.overloads.choose(name, node, operands, functions)
        if any(isinstance(param, RawOf) for param in chosen.params):
            return self.frame.inline(chosen, operands, node.span)
        copies: list[Copy] = []
        args = tuple(self.argument(*pair, copies) for pair in zip(chosen.params, operands, strict=True))
        types = tuple(tuple(type_of(part) for part in arg) for arg in args)
        instance = self.overloads.instance(chosen, types, node.span)
        flat = tuple(part for arg in args for part in arg)
        call = Call(instance.function.name, flat, instance.function.result or INT32)
        return self._emit_call(call, instance, copies, wanted)

    def _emit_call(self, call: Call, instance: Template, copies: list[Copy], wanted: bool) -> Expr | None:
        result = instance.function.result
        if not instance.impure:
            return self.frame.bounded(call) if result is not None else None
        self.frame.impure = self.frame.impure or any(
            isinstance(type_of(arg), Pointer) and not isinstance(arg, LocalArray) for arg in call.args
        )
        kept = self.frame.variable(result) if result is not None and wanted else None
        self.frame.emit(CallStatement(call, kept.name if kept else "", line=self.frame.line))
        self.copy_back(copies)
        return kept if wanted or result is None else call

    def copy_back(self, copies: list[Copy]) -> None:
        """Reload variables that were passed through memory."""
        for place, memory in copies:
            found = tuple(Load(each, each.type.element) for each in memory)
            value = Make(found, place.type) if isinstance(place.type, Struct) else found[0]
            self.storage.store(place, value, Span(self.frame.unit.source, 0, 0), wanted=False)

    def argument(self, param: CType, operand: CallOperand, copies: list[Copy]) -> tuple[Expr, ...]:
        """The IR arguments for a parameter. Raises CannotConvert or BadArgument."""
        match param, operand.value:
            case DType() | Struct(), Address() | Variable() | FieldPlace() | StructAddress() as place:
                if operand.pointer:
                    raise CannotConvert("a pointer", show(param), "read what it points to: *p").at(operand.span)
                return (self.storage.converted(self.storage.load(place), param, operand.span),)
            case DType() | Struct(), Expr() as value:
                return (self.storage.converted(value, param, operand.span),)
            case PointerTo(element=DType()), Address() as address:
                return (self._checked(address, param, operand.span),)
            case PointerTo(element=element), StructAddress(type=type_) as address if type_ == element:
                if address.const and not param.const:
                    cure = "declare the parameter const, or pass a variable"
                    shown = f"the address of {address.const}"
                    raise CannotConvert(shown, "a pointer to be written", cure).at(operand.span)
                return address.pointers
            case PointerTo(element=element), (Variable(type=type_) | FieldPlace(type=type_)) as place if (
                type_ == element
            ):
                return self._referred(place, param, copies, operand.span)
            case _, RawArray(name=name):
                cure = f"give the parameter a template's type: template<typename A> ... f(A {name})"
                raise CannotConvert(show(operand.type), show(param), cure).at(operand.span)
            case PointerTo(element=element), _:
                cure = f"pass an address or variable of type {element.name}"
                raise CannotConvert(show(operand.type), show(param), cure).at(operand.span)
            case _:
                raise AssertionError(f"parameters have types, not {param}")

    def _checked(self, address: Address, param: PointerTo, span: Span) -> Expr:
        if address.element != param.element or target_type(address.pointer) != address.element:
            raise CannotConvert(f"a pointer to {address.element}", show(param)).at(span)
        if address.const and not param.const:
            cure = "declare the parameter const, or pass an output"
            raise CannotConvert(f"the address of {address.const}", "a pointer to be written", cure).at(span)
        return address.pointer

    def _referred(
        self, place: Variable | FieldPlace, param: PointerTo, copies: list[Copy], span: Span
    ) -> tuple[LocalArray, ...]:
        """A variable passed by reference: each part goes through an array of one element and back."""
        for known, memory in copies:
            if known is place or (isinstance(place, FieldPlace) and known == place):
                return memory
        reason = why_constant(place)
        if reason and not param.const:
            raise CannotConvert(f"the address of {reason}", "a pointer to be written", "copy it first").at(span)
        name = place.name if isinstance(place, Variable) else place.variable.name
        found: list[LocalArray] = []
        for part in parts_of(self.storage.load(place)):
            dtype = scalar_type(part)
            found.append(LocalArray(self.frame.fresh(f"{name}_ref"), Pointer(dtype, "local")))
            self.frame.emit(DeclareArray(found[-1].name, dtype, 1, (part,), line=self.frame.line))
        if not reason:
            copies.append((place, tuple(found)))
        return tuple(found)

    # --- constructors ---

    def constructed(self, struct: Struct, args: tuple[s.Expression, ...], span: Span) -> Expr:
        """The struct that a constructor creates from arguments. Raises ArgumentCount or TemplateMismatch."""
        functions = self.frame.unit.record(struct).constructors
        operands: list[CallOperand] = []
        for at, arg in enumerate(args):
            if isinstance(arg, s.Braced):
                cure = "name the type of an argument in braces: P{a, b}"
                raise NotSupported("a braced argument of a constructor is", cure).at(arg.span)
            operands += self.overloads.operands(functions, (arg,), at)
        if len(operands) == 1 and operands[0].type == struct and not operands[0].pointer:
            return self.argument(struct, operands[0], [])[0]  # a copy
        return self._made(struct, operands, span)

    def _made(self, struct: Struct, operands: list[CallOperand], span: Span) -> Expr:
        found = self._device(
            struct.name, s.Node(span), operands, self.frame.unit.record(struct).constructors, wanted=True
        )
        assert found is not None, "constructors give structs"
        return found

    def implicit(self, value: Expr, struct: Struct, span: Span) -> Expr | None:
        """The struct that a constructor creates from one value, None if there is none."""
        if isinstance(type_of(value), Struct) or not self.overloads.converting(struct):
            return None
        return self._made(struct, [CallOperand(value, False, span)], span)
