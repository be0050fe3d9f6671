"""The loop by which blocks of CUDA threads take squares of elements, where arrays run along different axes."""

from __future__ import annotations

from collections.abc import Iterable

from fusec.base.kernel_abi import VECTOR_BYTES, Step
from fusec.codegen.c_family.file import indented
from fusec.codegen.c_family.frame import Frame, GridShape, unravelled
from fusec.codegen.c_family.tiles import SQUARE_THREADS, Tiles
from fusec.codegen.cuda_copies import BARRIER
from fusec.ir.loops import ArrayParam

IN_SQUARE = f"if (threadIdx.x >= {SQUARE_THREADS}) continue;"


def tile_loop(frame: Frame, tiles: Tiles, grid: GridShape) -> list[str]:
    """Every block takes a square after the other."""
    return _Squares(frame, tiles, grid).loop()


class _Squares:
    """The texts of one loop. rows, columns: where a square begins, along the turned arrays' axis and the last one."""

    def __init__(self, frame: Frame, tiles: Tiles, grid: GridShape) -> None:
        self.frame, self.tiles, self.grid = frame, tiles, grid
        self.places, self.last = frame.places, frame.layout.ndim - 1
        self.c_type, self.narrow = frame.coordinate_types()
        self.extent = [f"{self.narrow}{self.places.use('extent', '', axis).text}" for axis in range(frame.layout.ndim)]
        fresh = frame.names.fresh
        self.tile, self.columns, self.rows, self.at, self.count = map(fresh, ("tile", "begin", "begin", "at", "tiles"))
        self.in_words, self.start, self.left = map(fresh, ("in_words", "start", "count"))

    @property
    def _names(self) -> tuple[str, str]:
        """The coordinates along the turned arrays' axis and the last one."""
        return self.places.coordinates[self.tiles.axis], self.places.coordinates[self.last]

    def loop(self) -> list[str]:
        """The declarations and the loop."""
        tiles, long, wide = self.tiles, self.grid.long, self.grid.long.strip()
        extent, narrow, side = self.extent, self.narrow, tiles.side
        pieces = {each: f"(({extent[each]} + {side - 1}) / {side})" for each in (tiles.axis, self.last)}
        across, along = pieces[self.last], pieces[tiles.axis]
        lines = [f"__shared__ {self._type(each.array)} {each.square}[{side}][{tiles.words}];" for each in tiles.arrays]
        lines += [f"const bool {self.in_words} = {self._is_in_words()};"] if tiles.lanes > 1 else []
        size = f"{narrow}{self.places.use('size').text}"
        lines.append(
            f"const {wide} {self.count} = {size} / {extent[tiles.axis]} / {extent[self.last]} * {along} * {across};"
        )
        at = f"{narrow}{self.tile}"
        body = [f"const {self.c_type} {self.columns} = {at} % {across} * {side};"]
        body.append(f"const {self.c_type} {self.rows} = {at} / {across} % {along} * {side};")
        outer = [axis for axis in range(self.last) if axis != tiles.axis]
        names = [self.places.coordinates[axis] for axis in outer]
        body += unravelled(f"{at} / {across} / {along}", names, [extent[axis] for axis in outer], self.c_type)
        body += [*(self._words() if tiles.lanes > 1 else self._plain()), BARRIER, *self._body(), BARRIER]
        head = f"for ({long}{self.tile} = blockIdx.x; {self.tile} < {self.count}; {self.tile} += gridDim.x) {{"
        return [*lines, head, *indented(body, 1), "}"]

    def _type(self, array: ArrayParam) -> str:
        """The type of what a thread takes at once."""
        c_type = self.frame.spelling.type(array.dtype)
        return f"fusec_group<{c_type}, {self.tiles.lanes}>" if self.tiles.lanes > 1 else c_type

    def _word(self, array: ArrayParam) -> str:
        """The type of a word that is not taken apart."""
        return f"fusec_words<{array.dtype.nbytes * self.tiles.lanes}>"

    def _is_in_words(self) -> str:
        """Whether all words are whole, and begin at multiples of their size."""
        tiles, words = self.tiles, dict[int, list[str]]()
        for array in [each.array for each in tiles.arrays] + [each.array for each in tiles.groups]:
            steps = enumerate(self.frame.layout.step(array.name))
            strides = [self.places.use("stride", array.name, axis).text for axis, step in steps if step is Step.ANY]
            pointer = f"(unsigned long long){self.places.use('pointer', array.name).text}"
            words.setdefault(min(VECTOR_BYTES, tiles.lanes * array.dtype.nbytes), []).extend([pointer, *strides])
        tests = [f"({' | '.join(parts)}) % {nbytes} == 0" for nbytes, parts in words.items()]
        return " && ".join([*tests, *(f"{self.extent[axis]} % {tiles.lanes} == 0" for axis in (tiles.axis, self.last))])

    # --- what a thread does with its words ---------------------------------------------------------------------

    def _over(self, rounds: int, along: str, across: str, statements: Iterable[str]) -> list[str]:
        """A loop over the words of a thread; along, across: what comes after their number to say where they are."""
        tiles = self.tiles
        lines = [
            f"const unsigned {self.at} = threadIdx.x + {SQUARE_THREADS} * {tiles.k};",
            f"const unsigned {tiles.along} = {self.at} {along}, {tiles.across} = {self.at} {across};",
            *statements,
        ]
        head = f"for (unsigned {tiles.k} = 0; {tiles.k} < {rounds}; ++{tiles.k}) {{"
        return ["#pragma unroll", head, *indented(lines, 1), "}"]

    def _guard(self, row: str, column: str) -> str:
        beyond = f"{row} >= {self.extent[self.tiles.axis]} || {column} >= {self.extent[self.last]}"
        return f"if ({beyond} || threadIdx.x >= {SQUARE_THREADS}) continue;"

    @property
    def _here(self) -> list[str]:
        """The declarations of the coordinates of an element."""
        row, column = self._names
        return [
            f"const {self.c_type} {row} = {self.rows} + {self.tiles.along};",
            f"const {self.c_type} {column} = {self.columns} + {self.tiles.across};",
            self._guard(row, column),
        ]

    @property
    def _in_row(self) -> list[str]:
        """The declarations of where a word begins that the body reads."""
        row, start = self._names[0], self.start
        return [
            f"const {self.c_type} {row} = {self.rows} + {self.tiles.along};",
            f"const {self.c_type} {start} = {self.columns} + {self.tiles.lanes} * {self.tiles.across};",
            self._guard(row, start),
        ]

    @property
    def _in_rows(self) -> tuple[int, str, str]:
        """The rounds and places of words that the body reads."""
        return self.tiles.elements // self.tiles.lanes, f"/ {self.tiles.words}", f"% {self.tiles.words}"

    @property
    def _in_columns(self) -> tuple[int, str, str]:
        """The rounds and places of small squares, or elements, that are turned."""
        return self.tiles.elements // self.tiles.lanes**2, f"% {self.tiles.words}", f"/ {self.tiles.words}"

    def _plain(self) -> list[str]:
        """Where a word is one element: the loads of all that a thread loads before it waits, and the turn."""
        tiles = self.tiles
        texts = [f"{self._type(each.array)} {each.ahead}[{tiles.elements}] = {{}};" for each in tiles.arrays]
        texts += [f"{self._type(array)} {name}[{tiles.elements}];" for array, name in tiles.ahead]
        for places, arrays in (
            (self._in_columns, [(each.array, each.ahead) for each in tiles.arrays]),
            (self._in_rows, tiles.ahead),
        ):
            values = [(name, self.places.own_element(array.name).value.text) for array, name in arrays]
            loads = [*self._here, *(f"{name}[{tiles.k}] = {value};" for name, value in values)]
            texts += self._over(*places, loads) if arrays else []
        column = tiles.column(tiles.along, tiles.across)
        stores = [f"{each.square}[{tiles.along}][{column}] = {each.ahead}[{tiles.k}];" for each in tiles.arrays]
        return texts + self._over(*self._in_columns, [IN_SQUARE, *stores])

    def _words(self) -> list[str]:
        """Where a word is several elements: the same, in words or one by one."""
        tiles = self.tiles
        texts = [f"{self._word(array)} {name}[{self._in_rows[0]}];" for array, name in tiles.ahead]
        whole, parts = indented(self._loads_of_words(), 1), indented(self._loads_of_elements(), 1)
        return [*texts, f"if ({self.in_words}) {{", *whole, "} else {", *parts, "}"]

    def _loads_of_words(self) -> list[str]:
        tiles, lanes, (row, column), lane = self.tiles, self.tiles.lanes, self._names, self.tiles.neighbour
        texts = [
            f"{self._word(each.array)} {each.ahead}[{self._in_columns[0]}][{lanes}] = {{}};" for each in tiles.arrays
        ]
        at = f"for (int {lane} = 0; {lane} < {lanes}; ++{lane}) {{"

        def load(array: ArrayParam) -> str:
            return f"*(const {self._word(array)}*)({self.places.own_element(array.name).address.text})"

        loads = [(each.ahead, load(each.array)) for each in tiles.arrays]
        lines = [
            f"const {self.c_type} {row} = {self.rows} + {lanes} * {tiles.along};",
            f"const {self.c_type} {self.start} = {self.columns} + {lanes} * {tiles.across};",
            self._guard(row, self.start),
            "#pragma unroll",
            at,
            f"    const {self.c_type} {column} = {self.start} + {lane};",
            *(f"    {name}[{tiles.k}][{lane}] = {value};" for name, value in loads),
            "}",
        ]
        texts += self._over(*self._in_columns, lines)
        loads = [(name, load(array)) for array, name in tiles.ahead]
        lines = [*self._in_row, f"const {self.c_type} {column} = {self.start};"]
        lines += [f"{name}[{tiles.k}] = {value};" for name, value in loads]
        texts += self._over(*self._in_rows, lines) if loads else []
        types = {each.array.name: self.frame.spelling.type(each.array.dtype) for each in tiles.arrays}
        turns = [f"fusec_turn<{types[each.array.name]}, {lanes}>({each.ahead}[{tiles.k}]);" for each in tiles.arrays]
        stores = [
            f"    *({self._word(each.array)}*)&{each.square}[{lanes} * {tiles.along} + {lane}]"
            f"[{tiles.across} ^ {tiles.along}] = {each.ahead}[{tiles.k}][{lane}];"
            for each in tiles.arrays
        ]
        return texts + self._over(*self._in_columns, [IN_SQUARE, *turns, "#pragma unroll", at, *stores, "}"])

    def _loads_of_elements(self) -> list[str]:
        tiles, lanes = self.tiles, self.tiles.lanes
        places = tiles.elements, f"% {tiles.side}", f"/ {tiles.side}"
        types = {each.array.name: self.frame.spelling.type(each.array.dtype) for each in tiles.arrays}
        texts = [f"{types[each.array.name]} {each.ahead}[{tiles.elements}] = {{}};" for each in tiles.arrays]
        (row, column), last = self._names, self.extent[self.last]
        loads = [
            f"const {self.c_type} {row} = {self.rows} + {tiles.along};",
            f"const {self.c_type} {self.start} = {self.columns} + {tiles.across};",
            self._guard(row, f"{self.start} / {lanes} * {lanes}"),
            f"const {self.c_type} {column} = {self.start} < {last} ? {self.start} : {last} - 1;",
        ]
        values = [(each.ahead, self.places.own_element(each.array.name).value.text) for each in tiles.arrays]
        texts += self._over(*places, [*loads, *(f"{name}[{tiles.k}] = {value};" for name, value in values)])
        each_of = [(array, name, self.frame.names.fresh(f"{array.name}_each")) for array, name in tiles.ahead]
        if each_of:
            texts += [f"{self._type(array)} {each}[{self._in_rows[0]}] = {{}};" for array, _, each in each_of]
            loads = [f"{each}[{tiles.k}] = {self._load(array, False)};" for array, _, each in each_of]
            texts += self._over(*self._in_rows, [*self._in_row, self._count(), *loads])
        column = tiles.column(tiles.along, f"{tiles.across} / {lanes}")
        stores = [
            f"{each.square}[{tiles.along}][{column}].v[{tiles.across} % {lanes}] = {each.ahead}[{tiles.k}];"
            for each in tiles.arrays
        ]
        texts += self._over(*places, [IN_SQUARE, *stores])
        for array, name, each in each_of:
            texts += ["#pragma unroll", f"for (int {tiles.k} = 0; {tiles.k} < {self._in_rows[0]}; ++{tiles.k}) {{"]
            texts += [f"    {name}[{tiles.k}] = *(const {self._word(array)}*)&{each}[{tiles.k}];", "}"]
        return texts

    def _load(self, array: ArrayParam, in_words: bool) -> str:
        """A word of an array beside the turned ones, or its elements one by one."""
        lanes, address = self.tiles.lanes, f"{self.places.row(array.name)} + {self.start}"
        each, count = ("", str(lanes)) if in_words else ("_each", self.left)
        return f"fusec_load{each}<{lanes}>({address}, {count})"

    def _count(self) -> str:
        """The declaration of how many elements of a word there are."""
        lanes, left = self.tiles.lanes, f"{self.extent[self.last]} - {self.start}"
        return f"const int {self.left} = {left} < {lanes} ? (int)({left}) : {lanes};"

    def _body(self) -> list[str]:
        """The statements for the elements of a thread; past the end of a line, its last element is computed again."""
        tiles, lanes, lane = self.tiles, self.tiles.lanes, self.tiles.neighbour
        inside = [*self.grid.inside, *self.frame.body]
        if lanes == 1:
            return self._over(*self._in_rows, [*self._here, *inside])
        lines = [*self._in_row, self._count()]
        for each in tiles.arrays:
            word = f"{each.square}[{tiles.along}][{tiles.column(tiles.along, tiles.across)}]"
            lines.append(f"const {self._type(each.array)} {each.group} = {word};")
        ahead = {array.name: name for array, name in tiles.ahead}
        after: list[str] = []
        for group in tiles.groups:
            name, c_type = group.array.name, self.frame.spelling.type(group.array.dtype)
            value = f"{self.in_words} ? {self._load(group.array, True)} : {self._load(group.array, False)}"
            if name in ahead:
                value = f"fusec_elements<{c_type}, {lanes}>({ahead[name]}[{tiles.k}])"
            const, value = "" if group.stored else "const ", f" = {value}" if group.loaded else ""
            lines.append(f"{const}{self._type(group.array)} {group.name}{value};")
            if group.stored:
                address = f"{self.places.row(name)} + {self.start}"
                after.append(f"if ({self.in_words}) fusec_store<{lanes}>({address}, {group.name}, {lanes});")
                after.append(f"else fusec_store_each<{lanes}>({address}, {group.name}, {self.left});")
        column = self._names[1]
        at = f"{self.start} + ({lane} < {self.left} ? {lane} : {self.left} - 1)"
        body = [f"const {self.c_type} {column} = {at};", *inside]
        head = f"for (int {lane} = 0; {lane} < {lanes}; ++{lane}) {{"
        lines += ["#pragma unroll", head, *indented(body, 1), "}", *after]
        return self._over(*self._in_rows, lines)
