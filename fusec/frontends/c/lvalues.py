"""Lvalues: what can be assigned and what has an address; indexing of raw arrays, local arrays and pointers."""

from __future__ import annotations

from fusec.base.diagnostics import counted
from fusec.base.dtypes import INT8, INT64, UINT8
from fusec.base.records import replace
from fusec.base.source import Span
from fusec.errors.language import (
    AssignToConst,
    BadIndex,
    CannotConvert,
    NotAPlace,
    NotAValue,
    NotSupported,
    UnknownMember,
)
from fusec.frontends.c import symbols as sym
from fusec.frontends.c import syntax as s
from fusec.frontends.c.arithmetic import dtype_of, step, to, truth
from fusec.frontends.c.c_types import PointerTo, show
from fusec.frontends.c.frame import FunctionFrame
from fusec.frontends.c.storage import PlaceAccess, target_type
from fusec.frontends.c.type_resolution import TypeResolver
from fusec.frontends.c.warnings import comma_index
from fusec.ir.expr import Const, Expr, Pointer, Struct, apply, const, type_of
from fusec.ir.loops import Assign, At, If, Local, LocalArray, Offset, Query

ADDRESSES = (
    "addresses differ from run to run: compare indices, and ask np.may_share_memory(a, b) before the call whether two"
    " arrays overlap"
)


class LvalueLowering:
    """Lowers places and addresses."""

    def __init__(self, frame: FunctionFrame) -> None:
        self.frame, self.storage, self.types = frame, PlaceAccess(frame), TypeResolver(frame)

    # --- places ---

    def place(self, node: s.Expression, what: str = "this") -> sym.Place:
        """The place an expression names. Raises NotAPlace and the errors of names and indices."""
        match node:
            case s.Name():
                return self._named(self.frame.lookup(node), node)
            case s.Index():
                return self.element(node)
            case s.Prefix(op="*", operand=operand):
                return self.storage.struct_place(node) or self.address(operand)
            case s.Prefix(op="++" | "--", operand=operand) if not self.is_pointer(operand):
                return self.stepped(node)[0]
            case s.Attribute():
                return self._field(node)
            case _:
                raise NotAPlace(what).at(node.span)

    def stepped(self, node: s.Prefix, wanted: bool = True) -> tuple[sym.Place, Expr]:
        """The place that a prefix ``++`` or ``--`` changes, evaluated once, and its new value."""
        place = self.place(node.operand, f"'{node.op}'")
        if wanted:
            place = self.frozen(place, "_t")
        return place, self.storage.store(place, step(self.storage.load(place), node.op, node.span), node.span, wanted)

    def _named(self, found: sym.Symbol, node: s.Name) -> sym.Place:
        match found:
            case sym.Variable() | sym.Address() | sym.FieldPlace() | sym.StructAddress(pointer=False):
                return found
            case sym.NamedConstant():
                raise AssignToConst(f"constant '{node.name}'", "copy it to a local variable first").at(node.span)
            case _:
                raise self.not_a_value(found, node)

    def not_a_value(self, found: sym.Symbol, node: s.Name) -> Exception:
        """The error for a name that is used as a value but has none."""
        match found:
            case sym.RawArray():
                return NotAValue(
                    f"raw array '{node.name}'", f"index it: {node.name}[i], or take an address: &{node.name}[0]"
                ).at(node.span)
            case sym.LocalArrayOf() | sym.GlobalArray():
                return NotAValue(f"array '{node.name}'", f"index it: {node.name}[0]").at(node.span)
            case sym.PointerVariable() | sym.StructAddress():
                return NotAValue(
                    f"pointer '{node.name}'", f"read what it points to: *{node.name} or {node.name}[0]"
                ).at(node.span)
            case sym.Indexer():
                return NotAValue("'_ind'", "use _ind.size(), _ind.ndim or _ind.get()[axis]").at(node.span)
            case _:
                raise AssertionError(f"{found} is a value")

    def _field(self, node: s.Attribute) -> sym.Place:
        owner = self.storage.owner(node)
        if owner is None and not isinstance(node.value, s.Name):
            raise NotAPlace(f"'.{node.name}'").at(node.span)
        if owner is None:
            self.frame.lookup(node.value)  # type: ignore[arg-type]
            raise UnknownMember(f"'{node.value.span.text}'", node.name, "only structs have fields").at(node.span)
        return self.storage.select(owner, node)

    # --- indexing ---

    def element(self, node: s.Index) -> sym.Address:
        """The element that an index expression names."""
        base, indices = _indices(node)
        if isinstance(node.index, s.Comma):
            raise comma_index(node, isinstance(base, s.Name) and isinstance(self.frame.find(base.name), sym.RawArray))
        if isinstance(base, s.Name):
            found = self.frame.array_of(base)
            match found:
                case sym.RawArray():
                    if len(indices) > 1:
                        cure = f"write ptrdiff_t idx[] = {{...}}; and then {base.name}[idx]"
                        raise BadIndex(f"raw array '{base.name}' takes one index", cure).at(node.span)
                    return self._raw(found, indices[0], node)
                case sym.LocalArrayOf():
                    return self._local_element(found, indices, node)
        if isinstance(base, s.Attribute) and base.name in ("shape", "strides", "get"):
            shown = base.value.span.text
            raise NotAValue(f"'{shown}.{base.name}'", f"call it: {shown}.{base.name}()[axis]").at(base.span)
        if len(indices) > 1:
            raise BadIndex("a pointer takes one index", "compute the flat index yourself").at(node.span)
        return self._further(self.address(base), indices[0])

    def _further(self, address: sym.Address, index: s.Expression, op: str = "+") -> sym.Address:
        """An address moved by an index that is evaluated after it."""
        mark = self.frame.mark
        distance = self.index(index)
        (pointer,) = self.frame.kept([address.pointer], mark)
        if address.offset is not None:
            (offset,) = self.frame.kept([address.offset], mark)
            address = replace(address, offset=offset)
        if op == "-":
            distance = apply("negative", distance)
        return self._advanced(replace(address, pointer=pointer), distance)

    def _advanced(self, address: sym.Address, distance: Expr) -> sym.Address:
        """An address some elements, or for an address of bytes some bytes, further on."""
        if address.offset is not None:
            start = address.offset
            offset = distance if isinstance(start, Const) and start.bits == 0 else apply("add", start, distance)
            return replace(address, offset=self.frame.bounded(offset))
        return replace(address, pointer=self.frame.bounded(self.moved(address.pointer, distance)))

    def index(self, node: s.Expression) -> Expr:
        """An index as int64. Raises BadIndex if it is no integer."""
        value = self.frame.value(node)
        given = dtype_of(value, node.span, "[]")
        if not given.is_integer and given.kind != "bool":
            raise BadIndex(f"an index must be an integer, not {given}", "convert it: (int)x, or floor it first").at(
                node.span
            )
        return to(value, INT64)

    def _raw(self, array: sym.RawArray, index: s.Expression, node: s.Index) -> sym.Address:
        pointer = Pointer(array.dtype, "global", bool(array.const))
        if isinstance(index, s.Name) and isinstance(found := self.frame.find(index.name), sym.LocalArrayOf):
            axes = tuple(
                to(self.storage.load(self.local_at(found, const(k, INT64))), INT64) for k in range(found.lengths[0])
            )
            return sym.Address(At(array.name, self._axes(array, axes, node), pointer), array.dtype, array.const)
        if _is_coordinates(index):
            axes = tuple(Query("", "coordinate", const(k, INT64), INT64) for k in range(array.ndim or 1))
            return sym.Address(At(array.name, axes, pointer), array.dtype, array.const)
        return sym.Address(At(array.name, (self.index(index),), pointer), array.dtype, array.const)

    def _axes(self, array: sym.RawArray, axes: tuple[Expr, ...], node: s.Index) -> tuple[Expr, ...]:
        if array.ndim is None:
            array.ndim = len(axes)
        if len(axes) == 1 or len(axes) == array.ndim:
            return axes
        cure = "give the index array one element for every axis"
        shown = f"'{array.name}' has {counted(array.ndim, 'axis', 'axes')}, the index {len(axes)}"
        raise BadIndex(shown, cure).at(node.span)

    def local_at(self, array: sym.LocalArrayOf, flat: Expr) -> sym.Address:
        """The element of a local array at a flat index."""
        start = LocalArray(array.name, Pointer(array.element, "local"))
        return sym.Address(self.moved(start, flat), array.element, array.const)

    def _local_element(self, array: sym.LocalArrayOf, indices: list[s.Expression], node: s.Index) -> sym.Address:
        if len(indices) != len(array.lengths):
            shown = f"'{array.name}' has {counted(len(array.lengths), 'dimension')}, the index {len(indices)}"
            raise BadIndex(shown, "index every dimension").at(node.span)
        flat: Expr = const(0, INT64)
        for length, index in zip(array.lengths, indices, strict=True):
            mark = self.frame.mark
            at = self.index(index)
            (flat,) = self.frame.kept([flat], mark)
            if isinstance(at, Const) and not 0 <= int(at.value) < length:
                raise BadIndex(
                    f"index {at.value} is outside of '{array.name}'", f"it has {counted(length, 'element')}"
                ).at(index.span)
            flat = self._row(flat, length, at)
        return self.local_at(array, self.frame.bounded(flat))

    def _row(self, flat: Expr, length: int, at: Expr) -> Expr:
        if isinstance(flat, Const) and flat.bits == 0:
            return at
        if isinstance(flat, Const) and isinstance(at, Const):
            return const(int(flat.value) * length + int(at.value), INT64)
        return apply("add", apply("multiply", flat, const(length, INT64)), at)

    def moved(self, pointer: Expr, distance: Expr) -> Expr:
        """An address shifted by some elements."""
        if isinstance(distance, Const) and distance.bits == 0:
            return pointer
        found = type_of(pointer)
        assert isinstance(found, Pointer), "only addresses move"
        return Offset(pointer, distance, found)

    # --- addresses ---

    def is_pointer(self, node: s.Expression) -> bool:
        """True if an expression is an address rather than a value."""
        while isinstance(node, s.Binary) and node.op in ("+", "-"):
            node = node.left
        match node:
            case s.Name():
                found = self.frame.find(node.name)
                return isinstance(found, (sym.PointerVariable, sym.LocalArrayOf, sym.GlobalArray)) or is_struct_pointer(
                    found
                )
            case s.Prefix(op="&"):
                return True
            case s.Prefix(op="++" | "--", operand=operand) | s.Postfix(operand=operand):
                return self.is_pointer(operand)
            case s.Cast(type=kind):
                return "*" in kind.marks or isinstance(self.types.resolve(kind), PointerTo)
            case s.Choose(then=then, orelse=orelse):
                return self.is_pointer(then) or self.is_pointer(orelse)
            case s.Assignment(target=target):
                return self.is_pointer(target)
            case s.Comma(second=second):
                return self.is_pointer(second)
            case s.CallNode():
                return self.returns_pointer(node)
            case s.Word(word="nullptr"):
                return True
            case _:
                return False

    def returns_pointer(self, node: s.CallNode) -> bool:
        """True for a call of a device function whose result is written with a star."""
        match node.callee:
            case s.Name(name=name) | s.TemplateId(name=name):
                return any("*" in function.result.marks for function in self.frame.unit.functions.get(name, ()))
        return False

    def address(self, node: s.Expression) -> sym.Address:
        """The address that an expression is. Raises NotAValue or NotAPlace."""
        with self.frame.nested(node.span):
            match node:
                case s.Name():
                    return self._pointer(self.frame.array_of(node), node)
                case s.Prefix(op="&", operand=operand):
                    return self._address_of(operand, node.span)
                case s.Binary(op="+" | "-" as op, left=left, right=right) if self.is_pointer(node):
                    return self._further(self.address(left), right, op)
                case s.Cast(type=kind, value=value):
                    return self._cast_pointer(kind, value, node.span)
                case (
                    s.Postfix(op=op, operand=s.Name() as target)
                    | s.Prefix(op="++" | "--" as op, operand=s.Name() as target)
                ):
                    return self._stepped(target, op, isinstance(node, s.Postfix))
                case s.Choose():
                    return self._chosen(node)
                case s.Comma(first=first, second=second):
                    self.frame.effect(first)
                    return self.address(second)
                case s.Assignment(target=target):
                    self.frame.effect(node)
                    return self.address(target)
                case s.CallNode() if self.returns_pointer(node):
                    return self._pointer_call(node)
                case _:
                    raise NotAValue("this", "a pointer is needed here: &x[0], or a local array").at(node.span)

    def _pointer_call(self, node: s.CallNode) -> sym.Address:
        """The address that a device function returns."""
        found = self.frame.call(node)
        assert found is not None, "the function returns a pointer"
        type_ = type_of(found)
        assert isinstance(type_, Pointer), "the function returns a pointer"
        return sym.Address(found, type_.element, "the target of a const pointer" if type_.const else "")

    def _pointer(self, found: sym.Symbol, node: s.Name) -> sym.Address:
        match found:
            case sym.PointerVariable(name=name, element=element, const=reason, type=type_):
                if type_ is None:
                    found.settle(Pointer(element, "global", bool(reason)))
                    type_ = found.type
                assert type_ is not None, "settled above"
                return sym.Address(Local(name, type_), element, reason, const(0, INT64) if found.in_bytes else None)
            case sym.LocalArrayOf(name=name, element=element, const=reason):
                return sym.Address(LocalArray(name, Pointer(element, "local")), element, reason)
            case sym.RawArray():
                raise self.not_a_value(found, node)
            case _:
                cure = "an array is needed here; to index a parameter, declare it raw"
                raise BadIndex(f"'{node.name}' is a single value, not an array or pointer", cure).at(node.span)

    def _address_of(self, node: s.Expression, span: Span) -> sym.Address:
        if isinstance(node, s.Name):
            found = self.frame.array_of(node)
            if isinstance(found, sym.LocalArrayOf):
                return self._pointer(found, node)
            if isinstance(found, sym.Variable) and found.const:
                cure = "inputs are values here; declare the parameter raw to take addresses"
                raise NotSupported(f"the address of '{node.name}' is", cure).at(span)
        found_place = self.place(node, "'&'")
        if not isinstance(found_place, sym.Address):
            raise NotSupported("this address is", "take the address of an array element or of a plain variable").at(
                span
            )
        return found_place

    def _cast_pointer(self, kind: s.Qualified, value: s.Expression, span: Span) -> sym.Address:
        wanted = self.types.resolve(kind)
        if not isinstance(wanted, PointerTo):
            raise NotSupported(f"an address as {show(wanted)} is", ADDRESSES).at(span)
        given = self.address(value)
        real = target_type(given.pointer)
        if given.offset is not None and wanted.element == real:
            return self.unbytes(given)
        if isinstance(wanted.element, Struct):
            cure = "read the elements one by one"
            raise CannotConvert(f"a pointer to {given.element}", show(wanted), cure).at(span)
        if given.offset is None and wanted.element in (INT8, UINT8) and real.nbytes > 1:
            return sym.Address(given.pointer, wanted.element, given.const, const(0, INT64))
        if wanted.element == given.element or (
            wanted.element.is_integer and real.is_integer and wanted.element.bits == real.bits
        ):
            return sym.Address(given.pointer, wanted.element, given.const)
        cure = "read the element and convert it; __float_as_int and its relatives reinterpret bits"
        raise CannotConvert(f"a pointer to {given.element}", f"a pointer to {wanted.element}", cure).at(span)

    def unbytes(self, address: sym.Address) -> sym.Address:
        """An address of bytes as one of the elements stored there, whose size must divide it."""
        real = target_type(address.pointer)
        assert address.offset is not None, "only addresses of bytes have offsets"
        size = const(real.nbytes, INT64)
        elements = const(0, INT64) if isinstance(address.offset, Const) and not address.offset.bits else None
        moved = self.moved(address.pointer, elements or apply("quotient", address.offset, size))
        return sym.Address(self.frame.bounded(moved), real, address.const)

    def _stepped(self, target: s.Name, op: str, after: bool) -> sym.Address:
        found = self.address(target)
        if not isinstance(found.pointer, Local) or found.offset is not None:
            raise NotAPlace(f"'{op}'").at(target.span)
        old = self.frame.temporary(found.pointer) if after else found.pointer
        moved = self.moved(found.pointer, const(1 if op == "++" else -1, INT64))
        self.frame.set(found.pointer, moved)
        return sym.Address(old, found.element, found.const)

    def _chosen(self, node: s.Choose) -> sym.Address:
        condition = truth(self.frame.value(node.condition))
        a, b, then, orelse = self.frame.either(node, self.address)
        if a.element != b.element:
            raise CannotConvert(f"a pointer to {b.element}", f"a pointer to {a.element}").at(node.span)
        kept = self.frame.variable(self._pointer_type(a, b, node.span))
        branches = (*then, Assign(kept.name, a.pointer)), (*orelse, Assign(kept.name, b.pointer))
        self.frame.emit(If(condition, *branches, line=self.frame.line))
        return sym.Address(kept, a.element, a.const or b.const)

    def _pointer_type(self, a: sym.Address, b: sym.Address, span: Span) -> Pointer:
        left, right = type_of(a.pointer), type_of(b.pointer)
        assert isinstance(left, Pointer), "addresses are pointers"
        assert isinstance(right, Pointer), "addresses are pointers"
        if left.element != right.element or left.space != right.space:
            raise CannotConvert(
                show(right), show(left), "both must point into arguments, or both into local arrays"
            ).at(span)
        return Pointer(left.element, left.space, left.const or right.const)

    # --- references ---

    def frozen(self, place: sym.Place, name: str) -> sym.Place:
        """A place for a reference, which later assignments to its index do not move."""
        self.storage.refuse_bytes(place)
        match place:
            case sym.Address(pointer=At(param=param, index=index, type=type_), element=element, const=reason):
                fixed = tuple(
                    at if isinstance(at, (Const, Query)) else self.frame.temporary(at, f"{name}_index") for at in index
                )
                return sym.Address(At(param, fixed, type_), element, reason)
            case sym.Address(pointer=Offset() as pointer, element=element, const=reason):
                if isinstance(pointer.offset, Const) and isinstance(pointer.pointer, LocalArray):
                    return place
                return sym.Address(self.frame.temporary(pointer, f"{name}_at"), element, reason)
            case sym.Address(pointer=Local() as pointer, element=element, const=reason):
                return sym.Address(self.frame.temporary(pointer, f"{name}_at"), element, reason)
            case _:
                return place


def is_struct_pointer(found: sym.Symbol | None) -> bool:
    """True for a parameter that is a pointer to a struct."""
    return isinstance(found, sym.StructAddress) and found.pointer


def _indices(node: s.Index) -> tuple[s.Expression, list[s.Expression]]:
    """``a[i][j]`` as a and [i, j]."""
    indices: list[s.Expression] = []
    base: s.Expression = node
    while isinstance(base, s.Index):
        indices.append(base.index)
        base = base.value
    return base, indices[::-1]


def _is_coordinates(node: s.Expression) -> bool:
    match node:
        case s.CallNode(callee=s.Attribute(value=s.Name(name="_ind"), name="get"), args=()):
            return True
    return False
