"""The loops by which CUDA threads take the interior of a stencil in strips, and its borders one by one."""

from __future__ import annotations

from fusec.base.dtypes import DType
from fusec.base.kernel_abi import VECTOR_BYTES, Step
from fusec.codegen.c_family.file import indented
from fusec.codegen.c_family.frame import Frame, GridShape, coordinates_of
from fusec.codegen.c_family.pieces import PRIMARY, SUM, Piece
from fusec.codegen.c_family.strips import NearElements, Strip
from fusec.ir.loops import REGISTER, ArrayParam


def strip_loop(frame: Frame, strip: Strip, grid: GridShape) -> list[str]:
    """A loop over elements that are in no strip, which take longer, and one over strips."""
    return _Strips(frame, strip, grid).loops()


class _Strips:
    """The texts of the loops. counts: how many strips there are along each axis; taken: elements of these."""

    def __init__(self, frame: Frame, strip: Strip, grid: GridShape) -> None:
        self.frame, self.strip, self.grid = frame, strip, grid
        self.places, self.axes = frame.places, range(frame.layout.ndim)
        self.c_type, self.narrow = frame.coordinate_types()
        self.extent = [self.places.use("extent", "", axis).text for axis in self.axes]
        self.units = [1 for _ in self.axes[:-2]] + [strip.shape.rows, strip.shape.columns]
        fresh = frame.names.fresh
        self.counts, self.taken, self.others = (
            [fresh(f"{what}{axis}") for axis in self.axes] for what in ("strips", "taken", "others")
        )
        self.at, self.begin, self.left, self.in_words = map(fresh, ("strip", "begin", "left", "in_words"))
        self.row, self.column = map(fresh, ("row", "column"))

    def loops(self) -> list[str]:
        """The declarations and the loops."""
        long = self.grid.long
        lines = []
        for axis in self.axes:
            low, high = self.strip.reach(axis)
            extent, unit = self.extent[axis], self.units[axis]
            times, over = (f" * {unit}", f" / {unit}") if unit > 1 else ("", "")
            inside = f"{extent} > {low + high} ? ({extent} - {low + high}){over} : 0"
            lines.append(f"const {long}{self.counts[axis]} = {inside};")
            lines.append(f"const {long}{self.taken[axis]} = {self.counts[axis]}{times};")
        words = self._is_in_words()
        lines += [f"const bool {self.in_words} = {words};"] if words else []
        return [*lines, *self._borders(), *self._interior()]

    # --- elements that are in no strip -----------------------------------------------------------------------------

    def _borders(self) -> list[str]:
        """The elements beyond the strips along one axis, and within them along those before it; axis by axis."""
        at, long = self.frame.names.fresh("border"), self.grid.long
        lines, cases = [], []
        for axis in self.axes:
            rest = f"({self.extent[axis]} - {self.taken[axis]})"
            factors = [*self.taken[:axis], rest, *self.extent[axis + 1 :]]
            lines.append(f"const {long}{self.others[axis]} = {' * '.join(factors)};")
        for axis in self.axes:
            before = "".join(f" - {other}" for other in self.others[:axis])
            position = f"{self.narrow}({at}{before})" if before else f"{self.narrow}{at}"
            cases.append(self._coordinates(axis, position))
        head = f"for ({long}{at} = {self.grid.first}; {at} < {' + '.join(self.others)}; {at} += {self.grid.threads}) {{"
        body = [f"{self.c_type} {', '.join(self.places.coordinates)};"]
        for axis, case in enumerate(cases):
            end = " + ".join(self.others[: axis + 1])
            test = f"if ({at} < {end}) {{" if axis < len(self.axes) - 1 else "{"
            body += [f"{'} else ' if axis else ''}{test}", *indented(case, 1)]
        body += ["}", *self.grid.inside, *self.frame.body]
        return [*lines, head, *indented(body, 1), "}"]

    def _coordinates(self, axis: int, position: str) -> list[str]:
        """The coordinates of an element that is beyond the strips along an axis."""
        rest = f"({self.extent[axis]} - {self.taken[axis]})"
        extents = [f"{self.narrow}{each}" for each in (*self.taken[:axis], rest, *self.extent[axis + 1 :])]
        lines = []
        for each, value in enumerate(coordinates_of(position, extents, len(self.axes))):
            low = self.strip.reach(each)[0]
            shift = f" + {low}" if each < axis and low else ""
            lines.append(f"{self.places.coordinates[each]} = {value}{shift};")
        here, low = self.places.coordinates[axis], self.strip.reach(axis)[0]
        return [
            *lines,
            f"if ({here} >= {low}) {here} += {self.taken[axis]};" if low else f"{here} += {self.taken[axis]};",
        ]

    # --- strips --------------------------------------------------------------------------------------------------

    def _interior(self) -> list[str]:
        long, at, shape, held = self.grid.long, self.at, self.strip.shape, self.strip.held
        names = [*self.places.coordinates[:-2], self.begin, self.left]
        extents = [f"{self.narrow}{count}" for count in self.counts]
        body = []
        values = coordinates_of(f"{self.narrow}{at}", extents, len(self.axes))
        for axis, (name, value) in enumerate(zip(names, values, strict=True)):
            low, unit = self.strip.reach(axis)[0], self.units[axis]
            times, shift = f" * {unit}" if unit > 1 else "", f" + {low}" if low else ""
            body.append(f"const {self.c_type} {name} = {value}{times}{shift};")
        words = [near for near in held.near if self._word(near.array)]
        types = [self._type(near.array.dtype) for near in held.near]
        pairs = zip(types, held.near, strict=True)
        body += [f"{c_type} {near.name}[{near.rows}][{near.columns}];" for c_type, near in pairs]
        for near in held.near:
            loads = self._loads(near, 1)
            if near in words:
                whole = indented(self._loads(near, shape.columns), 1)
                loads = [f"if ({self.in_words}) {{", *whole, "} else {", *indented(loads, 1), "}"]
            body += loads
        body += ["#pragma unroll", *self._count(held.row, shape.rows, self._row())]
        total = " * ".join(self.counts)
        head = f"for ({long}{at} = {self.grid.first}; {at} < {total}; {at} += {self.grid.threads}) {{"
        return [head, *indented(body, 1), "}"]

    def _row(self) -> list[str]:
        """The statements for a row of a strip."""
        shape, held, (along, across) = self.strip.shape, self.strip.held, self.places.coordinates[-2:]
        each = [*self.grid.inside, *self.strip.body]
        at_row = f"const {self.c_type} {along} = {self.begin} + {held.row};"
        if shape.columns == 1:
            return [at_row, f"const {self.c_type} {across} = {self.left};", *each]
        each.insert(0, f"const {self.c_type} {across} = {self.left} + {held.column};")
        lines, stores = [at_row], list[str]()
        for group in held.groups:
            lines.append(f"fusec_group<{self._type(group.array.dtype)}, {shape.columns}> {group.name};")
            arguments = f"({self.places.row(group.array.name)} + {self.left}, {group.name}, {shape.columns});"
            stores.append(f"if ({self.in_words}) fusec_store<{shape.columns}>{arguments}")
            stores.append(f"else fusec_store_each<{shape.columns}>{arguments}")
        return [*lines, "#pragma unroll", *self._count(held.column, shape.columns, each), *stores]

    def _count(self, counter: str, count: int, body: list[str]) -> list[str]:
        return [f"for (int {counter} = 0; {counter} < {count}; ++{counter}) {{", *indented(body, 1), "}"]

    def _type(self, dtype: DType) -> str:
        return self.frame.spelling.type(dtype)

    def _word(self, array: ArrayParam) -> int:
        """The bytes of a word of an array; 0 if it is not loaded in words."""
        return self.strip.shape.word(array)

    def _loads(self, near: NearElements, columns: int) -> list[str]:
        """The loads of neighbours, of up to so many columns at once."""
        outer = [_shifted(*each) for each in zip(self.places.coordinates[:-2], near.outer, strict=True)]
        outer.append(_shifted(f"{self.begin} + {self.row}", near.first))

        def source(column: Piece) -> str:
            return self.places.raw_element(near.array.name, [*outer, column]).value.text

        if columns == 1:
            source_text = source(_shifted(f"{self.left} + {self.column}", -near.before))
            load = f"{near.name}[{self.row}][{self.column}] = {source_text};"
            lines = ["#pragma unroll", *self._count(self.column, near.columns, [load])]
        else:
            lines = []
            for at, count in near.words(columns):
                target, value = f"{near.name}[{self.row}][{at}]", source(_shifted(self.left, at - near.before))
                is_word = count * near.array.dtype.nbytes % REGISTER == 0
                lines.append(f"fusec_copy<{count}>(&{target}, &{value});" if is_word else f"{target} = {value};")
        return ["#pragma unroll", *self._count(self.row, near.rows, lines)]

    def _is_in_words(self) -> str:
        """Whether words begin at multiples of their size in all arrays that are loaded and stored so."""
        words: dict[int, list[str]] = {}
        for near in self.strip.held.near:
            if self._word(near.array):
                ndim = dict(self.frame.layout.raw)[near.array.name][0]
                pointer = f"(unsigned long long){self.places.use('pointer', near.array.name).text}"
                row = f"{self.places.use('raw_extent', near.array.name, ndim - 1).text} * {near.array.dtype.nbytes}"
                words.setdefault(min(VECTOR_BYTES, self._word(near.array)), []).extend([pointer, row])
        for group in self.strip.held.groups:
            array = group.array
            steps = enumerate(self.frame.layout.step(array.name))
            strides = [self.places.use("stride", array.name, axis).text for axis, step in steps if step is Step.ANY]
            pointer = f"(unsigned long long){self.places.use('pointer', array.name).text}"
            words.setdefault(min(VECTOR_BYTES, self.strip.shape.word(array)), []).extend([pointer, *strides])
        return " && ".join(f"({' | '.join(dict.fromkeys(parts))}) % {nbytes} == 0" for nbytes, parts in words.items())


def _shifted(text: str, distance: int) -> Piece:
    if not distance:
        return Piece(text, SUM) if " " in text else Piece(text, PRIMARY)
    return Piece(f"{text} {'+' if distance > 0 else '-'} {abs(distance)}", SUM)
