"""Storage: the value at a place and its changes; variables, elements in memory, structs and their fields."""

from __future__ import annotations

from fusec.base.dtypes import DType
from fusec.base.source import Span
from fusec.errors.language import AssignToConst, CannotConvert, NotSupported, UnknownMember
from fusec.frontends.c import syntax as s
from fusec.frontends.c.arithmetic import convert, to
from fusec.frontends.c.c_types import show
from fusec.frontends.c.context import Member
from fusec.frontends.c.frame import FunctionFrame
from fusec.frontends.c.symbols import Address, FieldPlace, Place, StructAddress, Variable
from fusec.frontends.c.type_resolution import THIS
from fusec.ir.expr import Const, Expr, Pointer, Struct, type_of
from fusec.ir.loops import Assign, Field, Load, Local, LocalArray, Make, Offset, SetField, Store


def root(pointer: Expr) -> Expr:
    """The origin of an address: an element, a local array or a pointer variable."""
    while isinstance(pointer, Offset):
        pointer = pointer.pointer
    return pointer


class PlaceAccess:
    """Reads and writes places."""

    def __init__(self, frame: FunctionFrame) -> None:
        self.frame = frame

    def load(self, place: Place) -> Expr:
        """The value in a place."""
        self.refuse_bytes(place)
        match place:
            case Variable(name=name, type=type_):
                return Local(name, type_)
            case FieldPlace(variable=variable, parts=parts, type=type_):
                whole = Local(variable.name, variable.type)
                found = tuple(Field(whole, part, dtype) for part, dtype in _typed(parts, type_))
                return Make(found, type_) if isinstance(type_, Struct) else found[0]
            case StructAddress(pointers=pointers, type=struct):
                return Make(tuple(Load(pointer, target_type(pointer)) for pointer in pointers), struct)
            case Address(pointer=pointer, element=element):
                return to(Load(pointer, target_type(pointer)), element)

    def store(self, place: Place, value: Expr, span: Span, wanted: bool = True) -> Expr:
        """Store a converted value in a place; returns the stored value, to be used if `wanted`."""
        reason = why_constant(place)
        self.refuse_bytes(place)
        if reason:
            raise AssignToConst(reason, _unlock(reason)).at(span)
        match place:
            case Variable(name=name, type=type_):
                self.frame.emit(Assign(name, self.converted(value, type_, span), line=self.frame.line))
                return Local(name, type_)
            case FieldPlace(variable=variable, parts=(part,), type=DType() as dtype):
                self.frame.emit(SetField(variable.name, part, convert(value, dtype, span), line=self.frame.line))
                return self.load(place)
            case FieldPlace(variable=variable, parts=parts, type=struct):
                whole = self._apart(self.converted(value, struct, span))
                for part, (name, dtype) in zip(parts, _fields(struct), strict=True):
                    self.frame.emit(SetField(variable.name, part, Field(whole, name, dtype), line=self.frame.line))
                return whole
            case StructAddress(pointers=pointers, type=struct):
                whole = self._apart(self.converted(value, struct, span))
                for pointer, (name, dtype) in zip(pointers, struct.fields, strict=True):
                    self.touch(pointer)
                    self.frame.emit(Store(pointer, Field(whole, name, dtype), line=self.frame.line))
                return whole
            case Address(pointer=pointer, element=element):
                given: Expr = convert(value, element, span)
                if wanted and not isinstance(given, (Const, Local)):
                    given = self.frame.temporary(given)  # the store may change what the value was made of
                self.touch(pointer)
                self.frame.emit(Store(pointer, to(given, target_type(pointer)), line=self.frame.line))
                return given

    def _apart(self, value: Expr) -> Expr:
        """A struct whose fields what is stored first cannot change."""
        return self.frame.temporary(value)

    def refuse_bytes(self, place: Place) -> None:
        """Raise NotSupported for an address of bytes, which can only be moved and cast back."""
        if isinstance(place, Address) and place.offset is not None:
            cure = "cast the address back before reading: *(T*)&bytes[k]"
            raise NotSupported("reading or writing single bytes of wider elements is", cure).at(self.frame.span)

    def touch(self, pointer: Expr) -> None:
        """Record a change of memory, which makes the function impure unless the memory is its own."""
        if not isinstance(root(pointer), LocalArray):
            self.frame.impure = True

    def converted(self, value: Expr, type_: DType | Struct, span: Span) -> Expr:
        """A value converted to the type of a variable. Raises CannotConvert."""
        if isinstance(type_, DType):
            return convert(value, type_, span)
        if type_of(value) == type_:
            return value
        made = self.frame.implicit(value, type_, span)
        if made is None:
            fields = ", ".join(name for name, _ in type_.fields)
            cure = f"write a value of the struct: {type_.name}{{{fields}}}, with a value for each field"
            raise CannotConvert(show(type_of(value)), f"struct {type_.name}", cure).at(span)
        return made

    # --- structs ---

    def select(self, place: Place, node: s.Attribute) -> Place:
        """The field of a struct that a node names. Raises UnknownMember."""
        struct = place.type if isinstance(place, (Variable, FieldPlace, StructAddress)) else None
        if not isinstance(struct, Struct):
            raise UnknownMember(f"'{node.value.span.text}'", node.name, "only structs have fields").at(node.span)
        return self.part_of(place, self._member(struct, node).name)

    def _member(self, struct: Struct, node: s.Attribute) -> Member:
        members = self.frame.unit.record(struct).members
        if node.name not in members:
            cure = f"its fields are {', '.join(members)}"
            raise UnknownMember(f"struct '{struct.name}'", node.name, cure).at(node.span)
        return members[node.name]

    def part_of(self, place: Place, name: str) -> Place:
        """A field of a struct in a place."""
        assert isinstance(place, (Variable, FieldPlace, StructAddress)), "only structs have fields"
        struct = place.type
        assert isinstance(struct, Struct), "only structs have fields"
        member = self.frame.unit.record(struct).members[name]
        order = [part for part, _ in struct.fields]
        at = [order.index(part) for part in member.parts]
        match place:
            case Variable():
                return FieldPlace(place, member.parts, member.type)
            case FieldPlace(variable=variable, parts=parts):
                return FieldPlace(variable, tuple(parts[k] for k in at), member.type)
            case StructAddress(pointers=pointers, const=reason):
                if isinstance(member.type, Struct):
                    return StructAddress(tuple(pointers[k] for k in at), member.type, reason)
                return Address(pointers[at[0]], member.type, reason)

    def field_of(self, value: Expr, node: s.Attribute) -> Expr:
        """A field of a struct that is a value. Raises UnknownMember."""
        struct = type_of(value)
        assert isinstance(struct, Struct), "only structs have fields"
        member = self._member(struct, node)
        found = tuple(Field(value, part, dtype) for part, dtype in _typed(member.parts, member.type))
        return Make(found, member.type) if isinstance(member.type, Struct) else found[0]

    def struct_place(self, node: s.Expression) -> Place | None:
        """The struct that an expression names, as a place; None if it is no struct, or a value."""
        found: object = None
        match node:
            case s.Name():
                found = self.frame.find(node.name)
            case s.Prefix(op="*", operand=s.Name() as operand):
                found = self.pointed(operand)
            case s.Attribute():
                owner = self.owner(node)
                found = self.select(owner, node) if owner is not None else None
        if isinstance(found, StructAddress):
            return found if not found.pointer else None
        return found if isinstance(found, (Variable, FieldPlace)) and isinstance(found.type, Struct) else None

    def owner(self, node: s.Attribute) -> Place | None:
        """The place of the struct whose member a node names; None for a value. Raises NotSupported."""
        if not node.arrow:
            return self.struct_place(node.value)
        match node.value:
            case s.Name() as name if (found := self.pointed(name)) is not None:
                return found
            case s.Prefix(op="&", operand=operand):
                return self.struct_place(operand)
        raise NotSupported("'->' is", "structs are values; use '.'").at(node.span)

    def pointed(self, node: s.Name) -> Place | None:
        """The struct that a parameter which is a pointer, or ``this``, points to."""
        found = self.frame.find(node.name)
        if isinstance(found, StructAddress) and found.pointer:
            return StructAddress(found.pointers, found.type, found.const)
        return found if node.name == THIS and isinstance(found, Variable) else None


def why_constant(place: Place) -> str:
    """Why a place may not be written; "" if it may."""
    return place.variable.const if isinstance(place, FieldPlace) else place.const


def target_type(pointer: Expr) -> DType:
    """The type of an address's target."""
    found = type_of(pointer)
    assert isinstance(found, Pointer), "only pointers have targets"
    return found.element


def _fields(struct: DType | Struct) -> tuple[tuple[str, DType], ...]:
    assert isinstance(struct, Struct), "only structs have fields"
    return struct.fields


def _typed(parts: tuple[str, ...], kind: DType | Struct) -> list[tuple[str, DType]]:
    """Fields of the IR with their types."""
    dtypes = [dtype for _, dtype in kind.fields] if isinstance(kind, Struct) else [kind]
    return list(zip(parts, dtypes, strict=True))


def _unlock(reason: str) -> str:
    """How to make a place one that may be written, from why it may not."""
    if reason.startswith(("input", "scalar")):
        return "declare a local variable, or make the parameter an output"
    return "copy it to a local array" if reason.endswith("preamble") else "drop the const from its declaration"
