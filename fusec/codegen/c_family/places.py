"""Locations: parameters of a kernel, the current position, and the addresses of array elements.

Collects which slots a body uses, so that the kernel asks for no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from fusec.base.dtypes import COMPLEX128, INT64, DType
from fusec.base.kernel_abi import VECTOR_BYTES, Layout, Slot, SlotKind, Step
from fusec.codegen.c_family import facts
from fusec.codegen.c_family.copies import CopiedArray
from fusec.codegen.c_family.names import ScopeNames
from fusec.codegen.c_family.pieces import POSTFIX, PRIMARY, PRODUCT, SUM, UNARY, Piece, infix
from fusec.codegen.c_family.spelling import Spelling
from fusec.ir.expr import Apply, Const, Expr
from fusec.ir.loops import ArrayParam, At, Element, Moved, Program, Query, ScalarParam

Print = Callable[[Expr], Piece]  # prints an int64 value where C converts to it
SlotKey = tuple[SlotKind, str, int]
MAX_AXES = 64  # NumPy's limit
HELPERS_BY_AXES = frozenset(f"fusec_{what}_{ndim}" for what in ("strided", "pick") for ndim in range(1, MAX_AXES + 1))


class AddressText(NamedTuple):
    """An address: a pointer, and a number of elements beyond it (None for none)."""

    pointer: Piece
    distance: Piece | None = None

    @property
    def value(self) -> Piece:
        """The element as an lvalue."""
        if self.distance is None:
            return Piece(f"*{self.pointer.at(UNARY)}", UNARY)
        return Piece(f"{self.pointer.at(POSTFIX)}[{self.distance.text}]", POSTFIX)

    @property
    def address(self) -> Piece:
        """The address itself."""
        if self.distance is None or self.distance.text == "0":
            return self.pointer
        return infix("+", SUM, self.pointer, self.distance)


def name(text: str) -> Piece:
    """An identifier."""
    return Piece(text, PRIMARY)


class AddressPrinter:
    """Names and addresses of one kernel.

    grouped: arrays whose elements a thread holds, each with where the current one is. lane: the variable that counts
    those of a group. rows: what points to a thread's row of an array, by array. copies: the arrays whose updates go to
    copies. only: the condition, if any, under which a thread loads and stores elements. threads: of a block program,
    the position in the block along each of its axes.
    """

    def __init__(self, program: Program, layout: Layout, spelling: Spelling, names: ScopeNames) -> None:
        self.program, self.layout, self.spelling = program, layout, spelling
        self.arrays = {param.name: param for param in program.arrays}
        self.grouped: dict[str, AddressText] = {}
        self.rows: dict[str, str] = {}
        self.only = names.fresh("is_there") if spelling.groups and facts.exchanges(program) else ""
        self.copies: dict[str, CopiedArray] = {}
        self.lane = ""
        self.uses_index = self.uses_coordinates = False
        is_wide = layout.aligned >= VECTOR_BYTES and facts.has_shuffles(program.body)  # groups that walk rows
        self._is_aligned = is_wide and "fusec_aligned" in spelling.helpers
        self.helpers: dict[str, str] = {}  # those whose text depends on a number of axes
        self._used: dict[SlotKey, str] = {}
        self._names = names
        raw = {param.name for param in program.arrays if param.raw}
        self._data = {array: names.fresh(array if array in raw else f"{array}_data") for array in self.arrays}
        self._fixed = {key: names.fresh(wanted) for key, wanted in self._wanted()}
        self.index = names.fresh("block" if program.block else "i")
        axes = range(layout.ndim)
        self.coordinates = [self.index] if layout.ndim == 1 else [names.fresh(f"{self.index}{axis}") for axis in axes]
        count = len(program.block)
        self.threads = [names.fresh(f"thread{axis if count > 1 else ''}") for axis in range(count)]

    def _wanted(self) -> list[tuple[SlotKey, str]]:
        """Every slot the kernel could have besides pointers and scalars, with the name it should have."""
        wanted: list[tuple[SlotKey, str]] = [(("size", "", 0), "size")]
        wanted += [(("extent", "", axis), f"extent{axis}") for axis in range(self.layout.ndim)]
        raw = dict(self.layout.raw)
        for array in self.arrays.values():
            if array.raw:
                wanted.append((("raw_size", array.name, 0), f"{array.name}_size"))
                for axis in range(raw[array.name][0]):
                    wanted.append((("raw_extent", array.name, axis), f"{array.name}_shape{axis}"))
                    wanted.append((("raw_stride", array.name, axis), f"{array.name}_stride{axis}"))
            else:
                axes = range(self.layout.ndim)
                wanted += [(("stride", array.name, axis), f"{array.name}_stride{axis}") for axis in axes]
        return wanted

    # --- slots -----------------------------------------------------------------------------------------------

    def use(self, kind: SlotKind, param: str = "", axis: int = 0) -> Piece:
        """The value of a slot, which becomes an argument of the kernel."""
        key = (kind, param, axis)
        self._used[key] = self._data[param] if kind == "pointer" else self._fixed[key]
        return name(self._used[key])

    def use_scalar(self, param: ScalarParam, c_name: str) -> None:
        """Take a scalar parameter; complex128 has two parts."""
        if param.dtype == COMPLEX128:
            self._used["scalar", param.name, 0] = self._names.fresh(f"{c_name}_re")
            self._used["scalar", param.name, 1] = self._names.fresh(f"{c_name}_im")
        else:
            self._used["scalar", param.name, 0] = c_name

    def use_copies(self, copies: Iterable[CopiedArray]) -> None:
        """Have updates of arrays go to copies."""
        for each in copies:
            self.copies[each.array.name] = each
            self.use("pointer", each.array.name)
            self.use("raw_size", each.array.name)

    def slots(self) -> list[tuple[Slot, str]]:
        """The slots taken, in the order of the kernel's arguments, with their names."""
        order = {param.name: at for at, param in enumerate(self.program.params, 1)}
        kinds = ("size", "extent", "pointer", "raw_size", "raw_extent", "raw_stride", "stride", "scalar")
        keys = sorted(self._used, key=lambda key: (order.get(key[1], 0), kinds.index(key[0]), key[2]))
        dtypes = {param.name: param.dtype for param in self.program.params}

        def dtype(key: SlotKey) -> DType:
            return dtypes[key[1]] if key[0] in ("pointer", "scalar") else INT64

        return [(Slot(*key, dtype(key)), self._used[key]) for key in keys]

    def pointer_type(self, array: ArrayParam) -> str:
        """The C type of a parameter that points to an array in global memory."""
        const = "" if array.written else "const "
        return f"{self.spelling.pointers['global']}{const}{self.spelling.type(array.dtype)}*"

    # --- elements of the iteration space ---------------------------------------------------------------------

    def place(self, pointer: Element | At | Moved, print_index: Print) -> AddressText:
        """An element of an array."""
        match pointer:
            case Element(param):
                return self.element(param)
            case At():
                return self.at(pointer, print_index)
            case Moved():
                return self.moved(pointer, print_index)

    def element(self, param: str) -> AddressText:
        """The current element of a non-raw array."""
        if param in self.grouped:
            return self.grouped[param]
        return self._element(param, {})

    def own_element(self, param: str) -> AddressText:
        """The current element of a non-raw array, where it is in memory."""
        return self._element(param, {})

    def row(self, param: str) -> str:
        """The address of the first element of the current row of a non-raw array that is dense along it."""
        base, (*steps, _) = self.use("pointer", param), self.layout.step(param)
        assert Step.UNIT not in steps, "rows of vectors are as far apart as vectors are aligned"
        if not steps:
            return base.text
        strides = [(name(self.coordinates[axis]), self.use("stride", param, axis)) for axis in range(len(steps))]
        return moved(base, strides).text

    def moved(self, place: Moved, print_index: Print) -> AddressText:
        """The element at another position."""
        pairs = zip(place.axes, place.distances, strict=True)
        return self._element(place.param, {axis: self._at(axis, distance, print_index) for axis, distance in pairs})

    def _at(self, axis: int, distance: Expr, print_index: Print) -> Piece:
        """A position so far along an axis; the distance to a position leads to that position."""
        match distance:
            case Apply("subtract", (there, Query("", "coordinate", Const() as along))) if int(along.value) == axis:
                return print_index(there)
            case _:
                return infix("+", SUM, name(self.coordinates[axis]), print_index(distance))

    def _element(self, param: str, positions: Mapping[int, Piece]) -> AddressText:
        """The element of a non-raw array at the current position, but for some axes."""

        def position(axis: int) -> Piece:
            return positions[axis] if axis in positions else name(self.coordinates[axis])

        steps = self.layout.step(param)
        if param in self.rows:
            return AddressText(name(self.rows[param]), position(steps.index(Step.UNIT)))
        base = self.use("pointer", param)
        strided = [axis for axis, step in enumerate(steps) if step is Step.ANY]
        unit = [axis for axis, step in enumerate(steps) if step is Step.UNIT]
        if strided:
            base = moved(base, [(position(axis), self.use("stride", param, axis)) for axis in strided])
        if not unit:
            return AddressText(base)
        index = position(unit[0])
        for axis in unit[1:]:
            index = infix("+", SUM, index, position(axis))
        if self._is_aligned and unit == [self.layout.ndim - 1]:
            base = Piece(f"fusec_aligned({base.text})", POSTFIX)
        return AddressText(base, index)

    # --- elements of raw arrays ------------------------------------------------------------------------------

    def at(self, place: At, print_index: Print) -> AddressText:
        """An element of a raw array by one position or by one index for every axis."""
        return self.raw_element(place.param, [print_index(value) for value in place.index])

    def raw_element(self, param: str, index: list[Piece]) -> AddressText:
        """The same by indices that are printed."""
        ndim, contiguous = dict(self.layout.raw)[param]
        if param in self.copies:
            copied, position = self.copies[param], self._dense(param, index)
            step = Piece(str(copied.count), PRIMARY)
            return AddressText(name(copied.own), position if copied.count == 1 else infix("*", PRODUCT, step, position))
        base = self.use("pointer", param)
        if ndim == 0:
            return AddressText(base, index[0] if index else None)
        if contiguous:
            return AddressText(base, self._dense(param, index))
        if len(index) == ndim:
            return AddressText(
                moved(base, [(at, self.use("raw_stride", param, axis)) for axis, at in enumerate(index)])
            )
        assert len(index) == 1, f"{param} has {ndim} axes, but {len(index)} indices"
        extents = [self.use("raw_extent", param, axis).text for axis in range(1, ndim)]
        strides = [self.use("raw_stride", param, axis).text for axis in range(ndim)]
        helper = self._strided_helper(ndim)
        offset = f"{helper}({', '.join([index[0].text, *extents, *strides])})"
        return AddressText(Piece(f"fusec_moved({base.text}, {offset})", POSTFIX))

    def _dense(self, param: str, index: list[Piece]) -> Piece:
        """Horner's rule over the extents of a C-contiguous array."""
        position = index[0]
        for axis, at in enumerate(index[1:], 1):
            scaled = infix("*", PRODUCT, position, self.use("raw_extent", param, axis))
            position = infix("+", SUM, scaled, at)
        return position

    def _strided_helper(self, ndim: int) -> str:
        """A function from a flat position to a byte offset."""
        helper = f"fusec_strided_{ndim}"
        long = self.spelling.type(INT64)
        extents = [f"{long} n{axis}" for axis in range(1, ndim)]
        strides = [f"{long} s{axis}" for axis in range(ndim)]
        terms = []
        for axis in range(ndim):
            inner = "".join(f" / n{after}" for after in range(ndim - 1, axis, -1))
            wrapped = f" % n{axis}" if axis else ""
            terms.append(f"index{inner}{wrapped} * s{axis}")
        self.helpers[helper] = (
            f"// byte offset of the element at a position in C order\n"
            f"{self.spelling.function}{long} {helper}({', '.join([f'{long} index', *extents, *strides])}) {{\n"
            f"    return {' + '.join(terms)};\n}}"
        )
        return helper

    # --- facts -----------------------------------------------------------------------------------------------

    def query(self, value: Query, print_index: Print) -> Piece:
        """A fact about the iteration space or a raw array."""
        match value.what:
            case "index":
                assert self.layout.c_order, "the flat index is asked for, but the layout is not walked in C order"
                self.uses_index = True
                return name(self.index)
            case "ndim":
                ndim = dict(self.layout.raw)[value.param][0] if value.param else self.layout.ndim
                return name(f"{ndim}{self.spelling.long_suffix}")
            case "size":
                return self.use("raw_size" if value.param else "size", value.param)
            case "thread":
                assert isinstance(value.axis, Const), "an axis of the block is a number"
                return name(self.threads[int(value.axis.value)])
            case "shape" | "stride" | "coordinate":
                return self._along(value, print_index)

    def _along(self, value: Query, print_index: Print) -> Piece:
        assert value.axis is not None, f"{value.what} needs an axis"
        ndim = dict(self.layout.raw)[value.param][0] if value.param else self.layout.ndim
        if isinstance(value.axis, Const):
            return self._quantity(value, int(value.axis.value))
        choices = [self._quantity(value, axis).text for axis in range(ndim)]
        helper = f"fusec_pick_{ndim}"
        long = self.spelling.type(INT64)
        params = ", ".join([f"{long} axis", *(f"{long} a{axis}" for axis in range(ndim))])
        chain = "".join(f"axis == {axis} ? a{axis} : " for axis in range(ndim - 1))
        self.helpers[helper] = (
            f"{self.spelling.function}{long} {helper}({params}) {{\n    return {chain}a{ndim - 1};\n}}"
        )
        return Piece(f"{helper}({', '.join([print_index(value.axis).text, *choices])})", POSTFIX)

    def _quantity(self, value: Query, axis: int) -> Piece:
        match value.what, value.param:
            case "coordinate", _:
                if self.layout.ndim == 1:
                    self.uses_index = True  # the only coordinate is the position itself
                else:
                    self.uses_coordinates = True
                return name(self.coordinates[axis])
            case "shape", "":
                return self.use("size") if self.layout.ndim == 1 else self.use("extent", "", axis)
            case "shape", param:
                return self.use("raw_extent", param, axis)
            case _, param:
                return self.use("raw_stride", param, axis)


def moved(base: Piece, terms: list[tuple[Piece, Piece]]) -> Piece:
    """A pointer moved by the sum of products of an index and a stride in bytes."""
    offset = infix("*", PRODUCT, *terms[0])
    for index, stride in terms[1:]:
        offset = infix("+", SUM, offset, infix("*", PRODUCT, index, stride))
    return Piece(f"fusec_moved({base.text}, {offset.text})", POSTFIX)
