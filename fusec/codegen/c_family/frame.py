"""The parts of a target's frame: the printed body of a kernel and everything around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import NamedTuple

from fusec.arguments.layouts import WIDE
from fusec.base.dtypes import COMPLEX64, COMPLEX128, FLOAT64, DType
from fusec.base.kernel_abi import USUAL_BLOCK, Fp, Layout, Slot
from fusec.base.records import dataclass, field
from fusec.codegen.c_family import facts
from fusec.codegen.c_family.copies import CopiedArray
from fusec.codegen.c_family.file import Part
from fusec.codegen.c_family.groups import LoadGroup
from fusec.codegen.c_family.names import ScopeNames
from fusec.codegen.c_family.places import AddressPrinter
from fusec.codegen.c_family.rows import Rows
from fusec.codegen.c_family.spelling import COMPLEX_STRUCTS, Spelling
from fusec.codegen.c_family.statements import harmless
from fusec.codegen.c_family.strips import Strip
from fusec.codegen.c_family.tiles import SQUARE_THREADS, Tiles
from fusec.ir.expr import Struct
from fusec.ir.loops import GROUP, ArrayParam, Program, ScalarParam, is_shared
from fusec.ir.reductions import AXIS
from fusec.ir.walk import statements

MODES: dict[Fp, str] = {
    "contract": "// fp contract: products and sums are one fma where it says so",
    "fast": "// fp fast: fma where it says so, float32 functions and division approximate",
}


class GridShape(NamedTuple):
    """The loop's view of the grid of threads."""

    inside: list[str]  # declarations for every element
    threads: str  # the variable that holds how many threads there are
    first: str  # the number of this one
    long: str  # the type of positions, and a blank
    size: str  # how many elements there are


@dataclass(frozen=True)
class Frame:
    """One kernel, printed except for what differs between targets.

    body: lines for one element, not indented. scalars: parameters passed by value, with their names in the body.
    copied: those of them that the body changes, so that every element needs its own. lanes: elements a thread takes.
    locals: the names of locals. above: structs, helper functions and functions, by name. fp: the floating-point mode.
    strip: what a thread does with several rows of the interior at once. tiles: arrays that go through shared memory.
    copies: arrays whose updates go there. rounds: how many times a thread loads `lanes` elements before it waits.
    """

    program: Program
    layout: Layout
    spelling: Spelling
    name: str
    names: ScopeNames
    places: AddressPrinter
    body: list[str]
    scalars: list[tuple[ScalarParam, str]]
    copied: frozenset[str]
    groups: list[LoadGroup]
    lanes: int
    locals: Mapping[str, str]
    above: list[Part] = field(default_factory=list)
    fp: Fp = "strict"
    strip: Strip | None = None
    tiles: Tiles | None = None
    rows: Rows | None = None
    copies: Sequence[CopiedArray] = ()
    rounds: int = 1

    @property
    def slots(self) -> list[tuple[Slot, str]]:
        """The arguments of the kernel with their names."""
        return self.places.slots()

    @property
    def is_long(self) -> bool:
        """Positions are 64-bit integers: the space may be that large, or the body uses them as the int64 they are."""
        return self.layout.wide or self.places.uses_index or self.places.uses_coordinates or self.rounds > 1

    def parameter(self, slot: Slot, name: str) -> str:
        """The declaration of an argument passed by value or as a pointer."""
        if slot.kind == "pointer":
            array = self.places.arrays[slot.param]
            alone = " __restrict__" if self.strip and array.raw else ""  # or a store could change what is loaded next
            return f"{self.places.pointer_type(array)}{alone} {name}"
        part = FLOAT64 if slot.dtype == COMPLEX128 else slot.dtype  # of a complex128, each slot holds one part
        return f"{self.spelling.type(part)} {name}"

    @property
    def together(self) -> str:
        """What a thread takes at once."""
        if self.strip is None:
            return f"{self.lanes} elements"
        shape = self.strip.shape
        rows = f"{shape.rows} rows" if shape.rows > 1 else "1 row"
        return f"{rows} of {shape.columns} columns" if shape.columns > 1 else rows

    def header(self) -> str:
        """Comment lines: the kernel's signature, its specialisation, and the requirements on its arguments."""
        program = self.program
        inputs: list[str] = []
        outputs: list[str] = []
        for param in program.params:
            raw = "raw " if isinstance(param, ArrayParam) and param.raw else ""
            written = isinstance(param, ArrayParam) and param.written
            (outputs if written else inputs).append(f"{raw}{param.dtype} {param.name}")
        lines = [
            f"// {program.name}({', '.join(inputs)}) -> ({', '.join(outputs)})",
            f"// layout {self.layout.key}{f', {self.together} at once' if self.lanes > 1 else ''}",
        ]
        mode = [MODES[self.fp]] if self.fp in MODES else []
        return "\n".join([harmless(line) for line in lines] + self._walk() + mode + self._demands())

    def _walk(self) -> list[str]:
        """Of a program that walks an axis itself: what its size counts."""
        if self.layout.rows:
            return [f"// size: a thread for each row of {self.layout.row} elements"]
        name = next((name for param, name in self.scalars if param.name == AXIS), "")
        if not name:
            return []
        together = facts.together(self.program.body)
        threads = f"{together} threads" if together > 1 else "a thread"
        threads = "a block" if self.program.block else threads
        return [f"// {name}: elements along the axis that is reduced; size: {threads} for each of its chunks"]

    def _demands(self) -> list[str]:
        """What the arguments must be for the text to be right, as a comment line; nothing if anything will do."""
        demands = []
        if self.groups and not self.layout.ragged:
            demands.append(f"arrays aligned to {self.layout.aligned} bytes")
        if self.strip:
            demands.append("results apart from the arrays with neighbours")
        if facts.in_groups(self.program):
            demands.append(f"blocks of a multiple of {GROUP} threads")
        if self.tiles:
            demands.append(f"blocks of at least {SQUARE_THREADS} threads")
        if self.rows:
            demands.append(f"blocks of at most {USUAL_BLOCK} threads")
        demands += [
            f"at most {each.most} elements in {self.places.use('pointer', each.array.name).text}"
            for each in self.copies
        ]
        if facts.takes_turns(self.program):
            demands.append("as many blocks as have a thread for every position, and zeros in what it publishes")
        several, cluster = self.program.threads, self.program.cluster
        if cluster > 1:
            demands.append(f"clusters of {cluster} blocks of {several // cluster} threads, one for each element")
        elif self.program.block:
            demands.append(f"blocks of {several} threads, one for each element")
        if not self.layout.wide:
            demands.append(f"fewer than 2^{WIDE.bit_length() - 1} elements, and bytes from end to end of an array")
        return [f"// needs {'; '.join(demands)}"] if demands else []

    def coordinates(self, position: str) -> list[str]:
        """Declarations of the coordinates of a position in C order."""
        ndim = self.layout.ndim
        if ndim == 1:
            return []
        c_type, narrow = self.coordinate_types()
        at = f"{narrow}{position}" if self.is_long else position
        if self.layout.rows:  # of which there are as many as threads, with one chunk each
            places = enumerate(self.places.coordinates)
            return [f"const {c_type} {name} = {0 if axis == self.layout.along else at};" for axis, name in places]
        extents = [f"{narrow}{self.places.use('extent', '', axis).text}" if axis else "" for axis in range(ndim)]
        return unravelled(at, self.places.coordinates, extents, c_type)

    @property
    def shared(self) -> list[str]:
        """Declarations of the arrays that the threads of a block share."""
        word, types = self.spelling.pointers["shared"], self.spelling.type
        return [
            f"{word}{types(each.element)} {self.locals[each.name]}[{each.length}];"
            for each in statements(self.program.body)
            if is_shared(each)
        ]

    def threads(self, number: str) -> list[str]:
        """Declarations of the position in the block. number: of the thread, an unsigned number."""
        block, (short, long) = self.program.block, (self.spelling.integer_type(bits, bits == 64) for bits in (32, 64))
        if len(block) == 1:
            return [f"const {long} {self.places.threads[0]} = {number};"]
        thread = self.names.fresh("thread")
        lines = [f"const {short} {thread} = {number};"]
        for axis, name in enumerate(self.places.threads):
            below = prod(block[axis + 1 :])
            text = f"{thread} / {below}" if below > 1 else thread
            lines.append(f"const {long} {name} = {text}{f' % {block[axis]}' if axis else ''};")
        return lines

    def coordinate_types(self) -> tuple[str, str]:
        """The type of coordinates, and a cast that makes divisions of positions narrow where these are."""
        short, long = self.spelling.integer_type(32, signed=False), self.spelling.integer_type(64, signed=True)
        c_type = long if self.layout.wide or self.places.uses_coordinates else short
        return c_type, "" if self.layout.wide else f"({short})"

    def scalar_copies(self) -> list[str]:
        """Declarations of scalars that every element changes for itself, or that came in two parts."""
        arguments = {(slot.param, slot.axis): name for slot, name in self.slots if slot.kind == "scalar"}
        lines = []
        for param, name in self.scalars:
            const = "" if param.name in self.copied else "const "
            c_type = self.spelling.type(param.dtype)
            if param.dtype == COMPLEX128:
                parts = f"{{{arguments[param.name, 0]}, {arguments[param.name, 1]}}}"
                lines.append(f"{const}{c_type} {name} = {parts};")
            elif arguments[param.name, 0] != name:
                lines.append(f"{const}{c_type} {name} = {arguments[param.name, 0]};")
        return lines


def unravelled(position: str, names: Sequence[str], extents: Sequence[str], c_type: str) -> list[str]:
    """Declarations of the coordinates of a position in C order; the first takes what lies beyond the extents."""
    values = coordinates_of(position, extents, len(names))
    return [f"const {c_type} {name} = {value};" for name, value in zip(names, values, strict=True)]


def coordinates_of(position: str, extents: Sequence[str], count: int) -> list[str]:
    """The values of so many coordinates of a position in C order."""
    values = []
    for axis in range(count):
        inner = "".join(f" / {extent}" for extent in reversed(extents[axis + 1 :]))
        values.append(f"{position}{inner}{f' % {extents[axis]}' if axis else ''}")
    return values


@dataclass(frozen=True)
class Dialect:
    """A language of the C family."""

    spelling: Spelling
    frame: Callable[[Frame], list[Part]]  # the parts of a file, from a kernel that is printed except for these


def struct_texts(used: list[Struct | DType], spelling: Spelling) -> list[Part]:
    """Declarations of the structs in use; complex numbers are two floats, aligned as these are."""
    texts: list[Part] = []
    for struct in used:
        match struct:
            case Struct(_, fields):
                names = spelling.structs[struct]
                inside = " ".join(f"{spelling.type(dtype)} {names.fields[field]};" for field, dtype in fields)
                texts.append((names.name, f"struct {names.name} {{ {inside} }};"))
            case DType():
                part = {COMPLEX64: "float", COMPLEX128: "double"}[struct]
                name = COMPLEX_STRUCTS[struct]
                texts.append((name, f"struct {name} {{ {part} re, im; }};"))
    return texts
