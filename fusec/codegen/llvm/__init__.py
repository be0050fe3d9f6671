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

from typing import Any

from fusec.base.dtypes import FLOAT32, FLOAT64
from fusec.base.kernel_abi import Fp, Kernel, Layout
from fusec.base.records import replace
from fusec.codegen.generator import Generator, Options
from fusec.codegen.llvm.arguments import KernelSlots
from fusec.codegen.llvm.column import ColumnNest
from fusec.codegen.llvm.cost import Costs
from fusec.codegen.llvm.interior import RowParts, SplitNest, lanes_of, parts_of
from fusec.codegen.llvm.lanes import hot_bits
from fusec.codegen.llvm.nest import Nest, Tail
from fusec.codegen.llvm.reduction import whole_program, widest_bits
from fusec.codegen.llvm.remainder import RemainderNest
from fusec.codegen.llvm.row import RowNest
from fusec.codegen.llvm.scaling import scaled
from fusec.codegen.llvm.tile import BAND, TiledNest, block_size, transposed_operands
from fusec.codegen.llvm.values import Builder
from fusec.codegen.llvm.walking import WalkNest, is_walk
from fusec.ir.loops import GROUP, Program, Shuffle, is_shared
from fusec.ir.reductions import ReductionIR
from fusec.ir.walk import statements
from fusec.passes.blocks import serialise_blocks
from fusec.passes.total_order_keys import use_total_order_keys

PASSES = ("sroa", "instruction_combine", "simplify_cfg")
"""Names of passes for llvmlite's ``create_new_module_pass_manager().add_NAME_pass()``; see Note [Passes]."""

FLAGS = "reassoc nsz contract"
"""What the mode "fast" allows LLVM. With nnan and ninf a nan or an infinity would make results undefined; with arcp and
afn LLVM's division by sqrt(0) gives nan."""
APPROXIMATE = frozenset({("rsqrt", FLOAT32)})
"""Ops that are not primitive, and in the mode "fast" are written without fusec.math."""


def generate(
    program: Program,
    layout: Layout,
    *,
    vector_bits: int = 512,
    symbol: str | None = None,
    lanes: int | None = None,
    half_casts: bool = True,
    permutes: int = 0,
    fp: Fp = "strict",
) -> Kernel:
    """The kernel of a program for one memory layout.

    vector_bits: width of the target's vector registers; 0 for scalar code. lanes: elements of one vector step, a power
    of two, if the caller knows better (rows much shorter than the default); 1 for scalar code. Programs with shuffles
    have groups as vectors, whatever the caller knows, and are run over whole groups only. half_casts: the target
    has instructions between float16 and float32, in place of which LLVM would call functions that may not be there.
    permutes: bits of the registers whose elements an x86 target permutes by variable indices: 512, 256 (32-bit elements
    only) or 0. fp: the floating-point mode the passes ran in.
    """
    assert not program.block, "block programs have a function of their own"
    program = replace(program, functions=scaled(program.functions, permutes))
    grouped = any(isinstance(stmt, Shuffle) for stmt in statements(program.body))
    lanes = GROUP if grouped else lanes
    parts = parts_of(program, layout.ndim, vector_bits)
    width = lanes_of(parts or program, layout, vector_bits) if lanes is None else lanes
    assert width.bit_count() == 1, f"lanes must be a power of two, not {width}"
    # A prefix, because a function called llvm.rows or memcpy would mean something to LLVM.
    name, arguments, declarations = symbol or f"fusec.{program.name}", KernelSlots(), dict[str, None]()
    transposed = transposed_operands(program, layout) if lanes is None and vector_bits and parts is None else ()
    block = block_size(program, transposed)
    flags, estimates = FLAGS if fp == "fast" else "", fp == "fast" and vector_bits >= 512

    def builder(lanes: int) -> Builder:
        return Builder(lanes, declarations, half_casts=half_casts, flags=flags, estimates=estimates, permutes=permutes)

    plain = builder(block or width)
    nest = _nest(parts, program, layout, plain, arguments)
    cost = nest.costs.of_body((parts.peeled.interior if parts else program).body)
    nest.tail = "none" if grouped else nest.tail_for(cost, vector_bits)
    if grouped:
        cost = Costs(program.functions, 1).of_body(program.body)  # for each element that a position takes
    nest.write()
    notes = _notes(width, vector_bits, lanes is not None, nest.tail, parts)
    if transposed:
        # Narrow tiles touch fewer pages; stores around the caches want more than one line of a row at a time.
        width = max(width, block) if layout.streaming else block
        tiled = TiledNest(program, layout, builder(width), arguments)
        tiled.prepare(transposed, block, f"{name}.rows")
        tiled.write()
        notes.append(f"tiles of {BAND} rows for {', '.join(transposed)}")
        functions = [_function(f"{name}.rows", nest, vector_bits, "internal "), _function(name, tiled, vector_bits)]
    else:
        functions = [_function(name, nest, vector_bits)]
    heading = f"; {program.name} for layout {layout.key}" + ("" if fp == "strict" else f", fp {fp}")
    source = "\n".join([heading, *declarations, *functions, "!0 = !{i32 1}", ""])
    return Kernel(
        name, "llvm", tuple(arguments.slots), source, layout, lanes=width, cost=cost, notes=tuple(notes),
        group=GROUP if grouped else 1, rows=parts.rows if parts else 1, fp=fp,
    )  # fmt: skip


def generate_reduction(
    reduction: ReductionIR,
    layout: Layout,
    axis: int,
    *,
    vector_bits: int = 512,
    symbol: str | None = None,
    half_casts: bool = True,
    permutes: int = 0,
    fp: Fp = "strict",
) -> Kernel:
    """The kernel that reduces one axis of a layout.

    Its positions are those of the layout with the axis replaced by its chunks, see `fusec.ir.reductions`. The extent of
    the axis is a slot beside the others; of arrays that are stored after a chunk, the axis counts chunks. Other
    arguments are those of `generate`.
    """
    reduction = replace(reduction, functions=scaled(reduction.functions, permutes))
    # Registers of fewer bits have no comparison or shift of 64-bit integers that pays.
    reduction = use_total_order_keys(reduction, frozenset({FLOAT32, FLOAT64} if vector_bits >= 512 else {FLOAT32}))
    program, is_last = whole_program(reduction), axis == layout.ndim - 1
    width = max(1, vector_bits // widest_bits(reduction))
    width = min(width, reduction.lanes) if is_last else width
    name, arguments, declarations = symbol or f"fusec.{reduction.name}", KernelSlots(), dict[str, None]()
    flags, estimates = FLAGS if fp == "fast" else "", fp == "fast" and vector_bits >= 512
    builder = Builder(width, declarations, half_casts=half_casts, flags=flags, estimates=estimates, permutes=permutes)
    nest: RowNest | ColumnNest
    if is_last:
        nest = RowNest(reduction, layout, builder, arguments)
        note = f"{reduction.lanes} accumulators in vectors of {width}"
    else:
        nest = ColumnNest(reduction, layout, axis, builder, arguments)
        note = f"axis {axis} of {layout.ndim} in chunks, {width} columns at once"
    cost = nest.costs.of_body(program.body)
    nest.tail = "masked" if vector_bits >= 512 else "scalar"
    nest.write()
    mode = "" if fp == "strict" else f", fp {fp}"
    heading = f"; {reduction.name} along axis {axis} of {layout.ndim}, for layout {layout.key}{mode}"
    source = "\n".join([heading, *declarations, _function(name, nest, vector_bits), "!0 = !{i32 1}", ""])
    return Kernel(name, "llvm", tuple(arguments.slots), source, layout, lanes=width, cost=cost, notes=(note,), fp=fp)


def generate_walk(
    program: Program,
    layout: Layout,
    *,
    vector_bits: int = 512,
    symbol: str | None = None,
    half_casts: bool = True,
    permutes: int = 0,
    fp: Fp = "strict",
) -> Kernel:
    """The kernel of a program whose elements walk along an axis before the last one, by loops that all run alike.

    Arguments are those of `generate`, which takes programs that no nest of loops can be made of.
    """
    if not is_walk(program, layout) or not vector_bits:
        return generate(
            program, layout, vector_bits=vector_bits, symbol=symbol, half_casts=half_casts, permutes=permutes, fp=fp
        )
    program = replace(program, functions=scaled(program.functions, permutes))
    width = max(1, vector_bits // hot_bits(program))
    name, arguments, declarations = symbol or f"fusec.{program.name}", KernelSlots(), dict[str, None]()
    flags, estimates = FLAGS if fp == "fast" else "", fp == "fast" and vector_bits >= 512
    builder = Builder(width, declarations, half_casts=half_casts, flags=flags, estimates=estimates, permutes=permutes)
    nest = WalkNest(program, layout, builder, arguments)
    nest.tail = "masked" if vector_bits >= 512 else "scalar"
    nest.write()
    heading = f"; {program.name} along rows, for layout {layout.key}" + ("" if fp == "strict" else f", fp {fp}")
    source = "\n".join([heading, *declarations, _function(name, nest, vector_bits), "!0 = !{i32 1}", ""])
    note, cost = f"tiles of {nest.tile} columns, {width} at once", Costs(program.functions, 1).of_body(program.body)
    return Kernel(name, "llvm", tuple(arguments.slots), source, layout, lanes=width, cost=cost, notes=(note,), fp=fp)


def generate_blocks(
    program: Program,
    layout: Layout,
    *,
    vector_bits: int = 512,
    half_casts: bool = True,
    permutes: int = 0,
    fp: Fp = "strict",
) -> Kernel:
    """The kernel of a block program: each element is a block, whose threads take turns in loops that LLVM vectorises.

    Arguments are those of `generate`. Raises BlockTooLarge.
    """
    turned = serialise_blocks(program)
    kernel = generate(turned, layout, vector_bits=vector_bits, lanes=1, half_casts=half_casts, permutes=permutes, fp=fp)
    shared = sum(stmt.length * stmt.element.nbytes for stmt in statements(program.body) if is_shared(stmt))
    shape = " x ".join(map(str, program.block))
    note = f"blocks of {shape} threads, which take turns, {shared} bytes shared"
    cost = min(Costs(program.functions).of_body(program.body) * program.threads, 1 << 20)
    return replace(kernel, cost=cost, notes=(note,), block=program.threads)


def _asked(options: Options) -> dict[str, Any]:
    """What the processor and the floating-point mode ask of a kernel."""
    host = options.processor()
    return {
        "vector_bits": host.vector_bits, "half_casts": host.converts_halves, "permutes": host.permutes, "fp": options.fp
    }  # fmt: skip


GENERATOR = Generator(
    lambda program, layout, options: (generate_blocks if program.block else generate)(
        program, layout, **_asked(options)
    ),
    approximate=APPROXIMATE,
    reduction=lambda reduction, layout, axis, options: generate_reduction(reduction, layout, axis, **_asked(options)),
    columns=lambda program, layout, options: generate_walk(program, layout, **_asked(options)),
)


def _notes(width: int, vector_bits: int, asked: bool, tail: Tail, parts: RowParts | None) -> list[str]:
    """What was decided, for people."""
    why = "the target has no vectors" if not vector_bits else "local arrays of more lanes would not fit the stack"
    notes = [f"{width} lanes" if width > 1 else f"scalar: {'asked for' if asked else why}"]
    notes.append(f"rest of a row: {tail}")
    if parts is not None:
        notes.append(f"interior apart from the border, rows at once: {parts.rows}")
    return notes


def _nest(
    parts: RowParts | None, program: Program, layout: Layout, builder: Builder, arguments: KernelSlots
) -> SplitNest | RemainderNest:
    if parts is not None:
        return SplitNest(parts, program, layout, builder, arguments)
    return RemainderNest(program, layout, builder, arguments)


def _function(name: str, nest: Nest, vector_bits: int, linkage: str = "") -> str:
    attributes = f'nounwind "prefer-vector-width"="{vector_bits}"' if vector_bits else "nounwind"
    return "\n".join(
        [
            f'define {linkage}void @"{name}"(i64 %lo, i64 %hi, ptr noalias readonly %args) {attributes} {{',
            "entry:",
            *nest.b.allocas,
            *nest.arguments.prologue,
            *nest.b.lines,
            "}",
        ]
    )
