"""LLVM IR text for the CPU: one function that runs a program over a range of positions of the iteration space.

The function is ``void symbol(i64 lo, i64 hi, ptr args)``. [lo, hi) is a range of row-major positions of the layout's
iteration space, so that a runtime may part the work anywhere; `args` points at 64-bit slots in the order of
`Kernel.slots` (pointers, strides in bytes, extents; scalars by their bits in the low bytes).

Note [Passes]. The text holds explicit vectors, so nothing is left to vectorise or unroll: `PASSES`, by the names of
llvmlite's pass manager, do for these kernels what the O3 pipeline does, in a tenth of its time (1 to 4 ms; O3 takes 15
to 45). The new_gvn pass must stay out: an assertion of LLVM 22 in it aborts the process. Code generation takes most of
what remains, 3 to 25 ms by the number of operations and registers.
"""

from __future__ import annotations

from collections.abc import Mapping

from fusec.base.dtypes import FLOAT32, FLOAT64, real_type
from fusec.base.kernel_abi import Kernel, Layout, SlotKind
from fusec.base.records import replace
from fusec.codegen.generator import Generator, Options
from fusec.codegen.llvm.arguments import KernelSlots
from fusec.codegen.llvm.column import ColumnNest
from fusec.codegen.llvm.cost import Costs
from fusec.codegen.llvm.file import join_modules, renamed
from fusec.codegen.llvm.flooring import floored
from fusec.codegen.llvm.interior import RowParts, SplitNest, lanes_of, parts_of
from fusec.codegen.llvm.lanes import hot_bits
from fusec.codegen.llvm.nest import Nest, Tail
from fusec.codegen.llvm.reduction import whole_program, widest_bits
from fusec.codegen.llvm.remainder import RemainderNest
from fusec.codegen.llvm.row import RowNest
from fusec.codegen.llvm.scaling import scaled
from fusec.codegen.llvm.strip import StripNest, in_rows, in_strips
from fusec.codegen.llvm.tile import BAND, TiledNest, block_size, transposed_operands
from fusec.codegen.llvm.values import Builder, LlvmOptions
from fusec.codegen.llvm.walking import WalkNest, is_walk
from fusec.ir.loops import GROUP, Function, Program, Shuffle, is_shared
from fusec.ir.reductions import ReductionIR
from fusec.ir.walk import statements
from fusec.passes.blocks import serialise_blocks
from fusec.passes.narrow_sums import narrow_sums
from fusec.passes.total_order_keys import use_total_order_keys

PASSES = ("sroa", "instruction_combine", "simplify_cfg")
"""Names of passes for llvmlite's ``create_new_module_pass_manager().add_NAME_pass()``; see Note [Passes]."""

APPROXIMATE = frozenset({("rsqrt", FLOAT32)})
"""Ops that are not primitive, and in the mode "fast" are written without fusec.math."""


def generate(program: Program, layout: Layout, options: LlvmOptions | None = None) -> Kernel:
    """The kernel of a program for one memory layout.

    Programs with shuffles have groups as vectors, whatever lanes are asked for, and are run over whole groups only.
    """
    assert not program.block, "block programs have a function of their own"
    options = options or LlvmOptions()
    bits, lanes = options.vector_bits, options.lanes
    program = replace(program, functions=with_own_ops(program.functions, options))
    grouped = any(isinstance(stmt, Shuffle) for stmt in statements(program.body))
    lanes = GROUP if grouped else lanes
    parts = parts_of(program, layout.ndim, bits)
    asked = layout
    if layout.strips and (parts is not None or not in_strips(program, layout.ndim)):
        layout = in_rows(layout)
    width = lanes_of(parts or program, layout, bits) if lanes is None else lanes
    assert width.bit_count() == 1, f"lanes must be a power of two, not {width}"
    transposed = transposed_operands(program, layout) if lanes is None and bits and parts is None else ()
    block = block_size(program, transposed)
    made = LlvmModule(program.name, options, _strides(program, layout))
    builder = made.builder(block or width)
    nest: RemainderNest | SplitNest
    if parts is None:
        nest = (StripNest if layout.strips else RemainderNest)(program, layout, builder, made.arguments)
    else:
        nest = SplitNest(parts, program, layout, builder, made.arguments)
    cost = nest.costs.of_body((parts.peeled.interior if parts else program).body)
    nest.tail = "none" if grouped else nest.tail_for(cost, bits)
    if grouped:
        cost = Costs(program.functions, 1).of_body(program.body)  # for each element that a position takes
    nest.write()
    notes = _notes(width, bits, lanes is not None, nest.tail, parts)
    if isinstance(nest, StripNest):
        notes.append(f"short rows in strips, by way of buffers for {', '.join(nest.packed) or 'nothing'}")
    if transposed:
        # Narrow tiles touch fewer pages; stores around the caches want more than one line of a row at a time.
        width = max(width, block) if layout.streaming else block
        tiled = TiledNest(program, layout, made.builder(width), made.arguments)
        tiled.prepare(transposed, block, f"{made.name}.rows")
        tiled.write()
        notes.append(f"tiles of {BAND} rows for {', '.join(transposed)}")
        made.add(nest, ".rows", "internal ")
        made.add(tiled)
    else:
        made.add(nest)
    kernel = made.kernel("", asked, width, cost, notes)
    return replace(kernel, group=GROUP if grouped else 1, rows=parts.rows if parts else 1)


def with_own_ops(functions: tuple[Function, ...], options: LlvmOptions) -> tuple[Function, ...]:
    """The functions, with the ops that this target alone has."""
    return floored(scaled(functions, options.permutes))


def _strides(program: Program, layout: Layout) -> dict[tuple[SlotKind, str, int], int]:
    """The strides along the last axis that a layout tells, in bytes."""
    raw, sizes = dict(layout.raw), {param.name: param.dtype.nbytes for param in program.arrays}
    found: dict[tuple[SlotKind, str, int], int] = {}
    for name, count in layout.gaps:
        key: tuple[SlotKind, str, int] = ("stride", name, layout.ndim - 1)
        found[("raw_stride", name, raw[name][0] - 1) if name in raw else key] = count * sizes[name]
    return found


# Vectors of narrow accumulators fill a register, for which up to _MORE registers of elements are in flight: then lanes
# are packed and unpacked less often. This pays for bodies of at most _SHORT operations an element.
_MORE, _SHORT = 4, 40


def generate_reduction(reduction: ReductionIR, layout: Layout, axis: int, options: LlvmOptions | None = None) -> Kernel:
    """The kernel that reduces one axis of a layout.

    Its positions are those of the layout with the axis replaced by its chunks, see `fusec.ir.reductions`. The extent of
    the axis is a slot beside the others; of arrays that are stored after a chunk, the axis counts chunks.
    """
    options = options or LlvmOptions()
    bits = options.vector_bits
    reduction = replace(reduction, functions=with_own_ops(reduction.functions, options))
    narrow = narrow_sums(reduction)
    reduction = narrow if widest_bits(narrow) < widest_bits(reduction) else reduction
    # Registers of fewer bits have no comparison or shift of 64-bit integers that pays.
    reduction = use_total_order_keys(reduction, frozenset({FLOAT32, FLOAT64} if bits >= 512 else {FLOAT32}))
    is_last = axis == layout.ndim - 1
    width = max(1, bits // widest_bits(reduction))
    width = _width_along_rows(reduction, width, bits) if is_last else width
    made = LlvmModule(reduction.name, options)
    nest = (RowNest if is_last else ColumnNest)(reduction, layout, axis, made.builder(width), made.arguments)
    note = f"axis {axis} of {layout.ndim} in chunks, {width} columns at once"
    note = f"{reduction.lanes} accumulators in vectors of {width}" if is_last else note
    note += ", two axes as one" if layout.strips else ""
    cost = nest.costs.of_body(nest.program.body)
    made.write(nest)
    return made.kernel(f" along axis {axis} of {layout.ndim},", layout, width, cost, [note])


def _width_along_rows(reduction: ReductionIR, width: int, bits: int) -> int:
    """The lanes of a vector along a row. width: how many elements fit a register."""
    held = max((real_type(dtype).bits for each in reduction.accumulators for _, dtype in each.parts), default=bits)
    cost = Costs(reduction.functions).of_body(whole_program(reduction).body)
    wide = min(bits // max(held, 8), _MORE * width) if cost <= _SHORT else width
    return min(max(width, wide), reduction.lanes)


def generate_walk(program: Program, layout: Layout, options: LlvmOptions | None = None) -> Kernel:
    """The kernel of a program whose elements walk along an axis before the last one, by loops that all run alike.

    `generate` takes programs that no nest of loops can be made of.
    """
    options = options or LlvmOptions()
    if not is_walk(program, layout) or not options.vector_bits:
        return generate(program, layout, options)
    program = replace(program, functions=with_own_ops(program.functions, options))
    width = max(1, options.vector_bits // hot_bits(program))
    made = LlvmModule(program.name, options)
    nest = WalkNest(program, in_rows(layout), made.builder(width), made.arguments)
    made.write(nest)
    note, cost = f"tiles of {nest.tile} columns, {width} at once", Costs(program.functions, 1).of_body(program.body)
    return made.kernel(" along rows,", layout, width, cost, [note])


def generate_blocks(program: Program, layout: Layout, options: LlvmOptions | None = None) -> Kernel:
    """The kernel of a block program: each element is a block, whose threads take turns in loops that LLVM vectorises.

    Raises BlockTooLarge.
    """
    kernel = generate(serialise_blocks(program), layout, replace(options or LlvmOptions(), lanes=1))
    shared = sum(stmt.length * stmt.element.nbytes for stmt in statements(program.body) if is_shared(stmt))
    shape = " x ".join(map(str, program.block))
    note = f"blocks of {shape} threads, which take turns, {shared} bytes shared"
    cost = min(Costs(program.functions).of_body(program.body) * program.threads, 1 << 20)
    return replace(kernel, cost=cost, notes=(note,), block=program.threads)


class LlvmModule:
    """The text of a kernel: its functions, which share their arguments and what the module declares."""

    def __init__(
        self, program: str, options: LlvmOptions, known: Mapping[tuple[SlotKind, str, int], int] | None = None
    ) -> None:
        # A prefix, because a function called llvm.rows or memcpy would mean something to LLVM.
        self.program, self.name = program, options.symbol or f"fusec.{program}"
        self.options, self.arguments = options, KernelSlots(known)
        self.declarations = dict[str, None]()
        self.functions: list[str] = []

    def builder(self, lanes: int) -> Builder:
        """A builder for a function."""
        return Builder(lanes, self.declarations, self.options)

    def write(self, nest: Nest) -> None:
        """Write a nest that masks the rest of its rows wherever the target does so for every kind of access."""
        nest.tail = "masked" if self.options.vector_bits >= 512 else "scalar"
        nest.write()
        self.add(nest)

    def add(self, nest: Nest, suffix: str = "", linkage: str = "") -> None:
        """The function of a nest that is written."""
        bits = self.options.vector_bits
        attributes = f'nounwind "prefer-vector-width"="{bits}"' if bits else "nounwind"
        head = f'define {linkage}void @"{self.name}{suffix}"(i64 %lo, i64 %hi, ptr noalias readonly %args)'
        entry = ("entry:", *nest.b.allocas, *nest.arguments.prologue, *nest.b.top)
        lines = [f"{head} {attributes} {{", *entry, *nest.b.lines, "}"]
        self.functions.append("\n".join(lines))

    def kernel(self, along: str, layout: Layout, lanes: int, cost: int, notes: list[str]) -> Kernel:
        """The finished kernel. along: how it runs, for people."""
        fp = self.options.fp
        heading = f"; {self.program}{along} for layout {layout.key}" + ("" if fp == "strict" else f", fp {fp}")
        source = "\n".join([heading, *self.declarations, *self.functions, "!0 = !{i32 1}", ""])
        slots = tuple(self.arguments.slots)
        return Kernel(self.name, "llvm", slots, source, layout, lanes, cost, tuple(notes), fp=fp)


def _asked(options: Options) -> LlvmOptions:
    """What the processor and the floating-point mode ask of a kernel."""
    host = options.processor()
    return LlvmOptions(host.vector_bits, host.converts_halves, host.permutes, options.fp)


GENERATOR = Generator(
    lambda program, layout, options: (generate_blocks if program.block else generate)(program, layout, _asked(options)),
    join_modules,
    renamed,
    approximate=APPROXIMATE,
    reduction=lambda reduction, layout, axis, options: generate_reduction(reduction, layout, axis, _asked(options)),
    columns=lambda program, layout, options: generate_walk(program, layout, _asked(options)),
)


def _notes(width: int, vector_bits: int, asked: bool, tail: Tail, parts: RowParts | None) -> list[str]:
    """What was decided, for people."""
    why = "the target has no vectors" if not vector_bits else "local arrays of more lanes would not fit the stack"
    notes = [f"{width} lanes" if width > 1 else f"scalar: {'asked for' if asked else why}"]
    notes.append(f"rest of a row: {tail}")
    if parts is not None:
        notes.append(f"interior apart from the border, rows at once: {parts.rows}")
    return notes
