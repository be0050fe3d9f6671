"""Reductions: the launches of their calls, and how a CPU runs their phases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from fusec.arguments import layouts
from fusec.arguments.layouts import Shape, View
from fusec.arguments.operands import Array
from fusec.base.diagnostics import counted
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Kernel
from fusec.base.recorded import is_symbol
from fusec.base.records import replace
from fusec.codegen import TARGETS
from fusec.compiler import reduction_pipeline as pipeline
from fusec.dispatch.axes import canonical, normalised, walk_shape
from fusec.dispatch.dense_rows import DenseRows, dense_rows, kind_of
from fusec.dispatch.empty_totals import asks_for_positions
from fusec.dispatch.spec import STRIDES, Bound, Given, KernelSpec, Kind, Lines, fp_line
from fusec.errors.arguments import OutShapeMismatch
from fusec.errors.reductions import NothingToReduce, RowsTooLong
from fusec.ir.loops import GROUP
from fusec.ir.reductions import REDUCED, ROUNDS, TOTALS, chunk_of
from fusec.kinds.columns import by_chunks, in_vectors
from fusec.kinds.launch import MASK, Machine, Request
from fusec.kinds.reduction import Operand, Phase, PhaseRules, dense, phases
from fusec.kinds.rows import NARROW, RowKind

# What NumPy's messages call the built-in rules that have no identity.
UFUNCS = {"min": "minimum", "max": "maximum", "minmax": "minimum", "ptp": "maximum", "norm_low": "minimum"}

TOGETHER_AGAIN = 64  # columns that a thread takes side by side where results of chunks are combined, in the caches
TOGETHER = 512  # the same where memory is read in long rows


def bind(kernel: KernelSpec, given: Given, machine: Machine, known: Mapping[str, DType] | None) -> Bound:
    """Bind types and order the walk. Raises for shapes, axes and types that do not fit together.

    known: the types of all parameters, for calls that are only shown. machine: makes no difference to the order.
    """
    kind = kind_of(kernel, given) if known is None else None
    same = None if kind is None else (machine.row_blocks, kind)
    rows: DenseRows | None = None if same is None else kernel.alike.get(same)
    found = None if rows is None else rows.bound_of(kernel, given)
    if found is None:
        found, axes, longest = _bound(kernel, given, machine, known)
        is_new = same is not None and not any(map(is_symbol, found.shape))
        made = dense_rows(kernel, given, found, axes, longest) if is_new else None
        if made is not None:
            kernel.alike.keep(same, made)
    return found


def _bound(
    kernel: KernelSpec, given: Given, machine: Machine, known: Mapping[str, DType] | None
) -> tuple[Bound, tuple[int, ...], int]:
    """The facts of a call, the axes that it reduces, and the most elements of a row that one kernel takes."""
    outputs = given.outputs or ()
    types = given.types(kernel) if known is None else known
    along = {param.name for param in kernel.in_params if not param.raw} - kernel.once | {MASK}
    views = {**given.inputs, **({} if given.mask is None else {MASK: given.mask})}
    shape = walk_shape(kernel.name, {name: each.shape for name, each in views.items() if name in along})
    axes = normalised(kernel.name, given.options.axis, shape)
    kept = tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
    result = (
        tuple(1 if axis in axes else extent for axis, extent in enumerate(shape)) if given.options.keepdims else kept
    )
    shapes = tuple(shape if param.name in kernel.elements else result for param in kernel.out_params)
    for param, each, wanted in zip(kernel.out_params, outputs, shapes, strict=False):
        if each.shape != wanted:
            raise OutShapeMismatch(kernel.name, param.name, each.shape, wanted).at()
    addressed = [param.name for param in kernel.in_params if param.raw and param.name in given.inputs]
    ndims = tuple((name, len(given.inputs[name].shape)) for name in addressed)
    uses, masked = kernel.uses_index, given.mask is not None
    request = Request(
        pipeline.types_with_mask(types, masked), given.numbers, kernel.fp,
        len(shape) if uses else 1, axes if uses else (0,), ndims, masked,
    )  # fmt: skip
    reduction, empty = pipeline.lower(kernel.definition, request)
    costly, held = pipeline.is_costly(kernel.definition, request), pipeline.held_bytes(kernel.definition, request)
    narrow = machine.vectors and any(types[name].nbytes <= NARROW for name in along & given.inputs.keys())
    row = RowKind(reduction.lanes, costly, held, narrow)
    parts = () if reduction.total is None else reduction.total.parts
    partials = tuple((f"_partial{at}", f"_given{at}", dtype) for at, (_, dtype) in enumerate(parts))
    is_empty, count = 0 in shape and 0 not in kept, prod(shape[axis] for axis in axes)
    if is_empty and not empty.body:
        raise _nothing(kernel, shape).at()
    raw = {name: each for name, each in views.items() if name not in along | kernel.once}
    found: tuple[Phase, ...] = ()
    longest = chunk_of(row.lanes, is_last=True)
    if 0 not in shape:
        inputs = {name: each for name, each in views.items() if name in along}
        once = {name: each for name, each in views.items() if name in kernel.once}
        made = [dense(shape if p.name in kernel.elements else kept, types[p.name]) for p in kernel.out_params]
        operands = _operands(kernel, inputs, shape, axes, outputs or made)
        operands += [_of_totals(name, each, shape, axes) for name, each in once.items()]
        totals_as_is = uses and asks_for_positions(reduction.finish)
        if machine.row_blocks and not partials and _are_as_levels(kernel, row, operands, shape, axes):
            longest = max(longest, row.longest(machine.row_blocks))
        rules = PhaseRules(row, partials, list(raw.items()), uses, totals_as_is, longest)
        found = phases(shape, axes, operands, rules)
        if reduction.total is None and len(found) > 1:
            most = longest if found[0].is_last else chunk_of(row.lanes, is_last=False)
            raise RowsTooLong(kernel.name, most, count).at()
    # Outputs over elements may be read too, where a walk finds what an earlier one has stored.
    read = frozenset(each.name for each in reduction.arrays if each.written and each.read) - kernel.elements
    bound = Bound(
        types, shape, shapes, found, raw, request, read,
        kept=kept, count=count, sizes={REDUCED: count, TOTALS: prod(kept)}, is_empty=is_empty,
    )  # fmt: skip
    return bound, axes, longest


def _are_as_levels(
    kernel: KernelSpec, row: RowKind, operands: Sequence[Operand], shape: Shape, axes: tuple[int, ...]
) -> bool:
    """Whether the totals of rows that are several chunks have the order of a kernel for each level of reductions.

    So it is if all levels have the same lanes, and each reads an input by which rows lie along the innermost axis.
    """
    levels = kernel.levels() if kernel.fp == "strict" else ()
    if not levels or any(level.lanes != row.lanes for level in levels):
        return False
    whole = set()
    for name, strides in ((each.name, each.strides) for each in operands if not each.is_output):
        steps = [(axis in axes, strides[axis]) for axis, extent in enumerate(shape) if extent > 1]
        if any(stride == 0 for _, stride in steps):
            continue
        along, across = ([stride for is_along, stride in steps if is_along == wanted] for wanted in (True, False))
        if not along or min(along) < 0 or max(along) >= min(map(abs, across), default=0):
            return False
        whole.add(name)
    return all(level.inputs & whole for level in levels)


def _nothing(kernel: KernelSpec, shape: Shape) -> NothingToReduce:
    """The error for totals of no elements; NumPy's text names its ufunc."""
    rule = kernel.definition.texts.get("rule", "")
    if hasattr(kernel.definition, "identity"):  # a kernel that its user has defined
        return NothingToReduce(kernel.name, shape, "give the kernel an identity")
    if rule not in UFUNCS:
        return NothingToReduce(kernel.name, shape)
    name = UFUNCS[rule]
    if kernel.name.startswith("nan"):
        name = {"minimum": "fmin", "maximum": "fmax"}[name]
    if rule in ("min", "max"):
        return NothingToReduce(name, shape, "pass initial=, the value of a total of no elements")
    return NothingToReduce(name, shape)


def _operands(
    kernel: KernelSpec,
    inputs: Mapping[str, View],
    shape: Shape,
    axes: tuple[int, ...],
    outputs: Sequence[View],
) -> list[Operand]:
    """Inputs and outputs as memory along the walk."""
    found = [
        Operand(name, view, layouts.broadcast_strides(view, shape), is_output=False) for name, view in inputs.items()
    ]
    for param, output in zip(kernel.out_params, outputs, strict=True):
        if param.name in kernel.elements:
            found.append(Operand(param.name, output, layouts.broadcast_strides(output, shape), is_output=True))
            continue
        found.append(_of_totals(param.name, output, shape, axes))
    return found


def _of_totals(name: str, given: View, shape: Shape, axes: tuple[int, ...]) -> Operand:
    """An array with one element for each total as memory along the walk."""
    view = without_kept(given, axes, len(shape))
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    strides = [0] * len(shape)
    for axis, stride in zip(kept, view.strides, strict=True):
        strides[axis] = 0 if shape[axis] == 1 else stride
    return Operand(name, view, tuple(strides), is_output=True)


def without_kept(view: View, axes: Sequence[int], ndim: int) -> View:
    """The view without the axes of one element that stand for reduced ones."""
    if len(view.shape) < ndim:
        return view
    kept = [axis for axis in range(ndim) if axis not in axes]
    return view._replace(
        shape=tuple(view.shape[axis] for axis in kept), strides=tuple(view.strides[axis] for axis in kept)
    )


def _fitted(kernel: KernelSpec, bound: Bound) -> Bound:
    """Columns are walked in vectors, rows that share elements by chunks; what no cache holds goes around them."""
    found = []
    for phase in bound.launches:
        assert isinstance(phase, Phase), "all launches of a reduction are"
        read, written = _walked(kernel, phase)
        widths = {name: bound.types[name].nbytes for name in read & bound.types.keys()}
        found.append(_around_caches(kernel, bound, by_chunks(in_vectors(phase, read, written), widths)))
    return replace(bound, launches=tuple(found))


def _walked(kernel: KernelSpec, phase: Phase) -> tuple[frozenset[str], frozenset[str]]:
    """The arrays that a phase reads along the axis, results of chunks included, and those that it writes there."""
    stored, written = {name for name, *_ in phase.made}, frozenset(each.name for each in kernel.out_params)
    found = frozenset(name for name, array in phase.arrays if array not in stored)
    return found - written - kernel.once, found & kernel.elements & written


def _around_caches(kernel: KernelSpec, bound: Bound, phase: Any) -> Any:
    streaming = _is_streaming(kernel, bound, phase)
    return replace(phase, layout=replace(phase.layout, streaming=True)) if streaming else phase


def _is_streaming(kernel: KernelSpec, bound: Bound, phase: Phase) -> bool:
    """Whether a phase moves more than the last cache holds."""
    from fusec.runtime.cpu.machine import last_level_cache_bytes

    if phase.is_last:
        pairs = zip(kernel.out_params, bound.shapes, strict=True)
        moved = sum(
            prod(shape) * bound.types[each.name].nbytes for each, shape in pairs if each.name in kernel.elements
        )
    else:
        names = {name for name, _, _ in phase.operands} & bound.types.keys()
        moved = prod(phase.extents) * sum(bound.types[name].nbytes for name in names)
    return moved > last_level_cache_bytes()


def _grain(phase: Phase, threads: int) -> tuple[int, int]:
    """Elements of a chunk, and columns that a thread takes side by side."""
    del threads
    elements = max(1, phase.extent // phase.chunks)
    if phase.is_last:
        return elements, 1
    return elements, TOGETHER if phase.role in ("whole", "first") else TOGETHER_AGAIN


# --- reports -------------------------------------------------------------------------------------------------------


def _describe(kernel: KernelSpec, bound: Bound, compiled: Sequence[Kernel]) -> tuple[int, Lines]:
    """The bytes that a reduction moves, and what it does."""
    found: Sequence[Any] = bound.launches
    moved = sum(_bytes_of(bound, phase) for phase in found)
    lines = [("reduces", f"{bound.shape} to {bound.kept}: {counted(bound.count, 'element')} for each total")]
    named = zip(found, compiled, strict=True)
    lines += [(f"kernel {at}", _line(phase, each)) for at, (phase, each) in enumerate(named, 1)]
    lines += [("bytes moved", f"{moved:,}"), fp_line(kernel)]
    if not found:
        lines.append(("kernels", "none: there is nothing to combine"))
    return moved, lines


def _line(phase: Phase, kernel: Kernel) -> str:
    """What one kernel does, and in which order."""
    extent, totals = phase.extents[phase.axis], phase.positions // phase.chunks
    if phase.is_last:
        order = f"chunks of up to {ROUNDS} elements for each accumulator; accumulators are then combined by halves"
    else:
        order = f"chunks of up to {ROUNDS}, one element after the other"
    walks = "; ".join(f"'{name}' {STRIDES[row[-1]]}" for name, row in phase.layout.steps)
    place = "along the innermost axis" if phase.is_last else f"along axis {phase.axis} of {len(phase.extents)}"
    threads = ""
    group = phase.sharing.few or GROUP
    if TARGETS[kernel.target].threads:
        threads = f"; {counted(prod(phase.threads), 'thread')}{f' in groups of {group}' if kernel.group > 1 else ''}"
        if kernel.block:
            blocks = counted(prod(phase.threads) * kernel.cluster, "block")
            together = f" in clusters of {kernel.cluster}" if kernel.cluster > 1 else ""
            threads = f"; {blocks} of {kernel.block} threads{together}"
    chunks = max(phase.chunks, phase.sharing.chunks)
    counts = f"{counted(extent, 'element')} {place}, {counted(chunks, 'chunk')} for each of {totals:,}"
    return f"{counts}; {order}; {walks}{threads}"


def _bytes_of(bound: Bound, phase: Phase) -> int:
    """Bytes that a kernel reads and writes, every element once."""
    between = {known: dtype for launch in bound.launches for known, _, dtype in launch.made}
    written = {known for known, _, _ in phase.made}
    total = 0
    for (name, strides, _), (_, known) in zip(phase.operands, phase.arrays, strict=True):
        once = known in written or (name in bound.types and strides[phase.axis] == 0)
        extents = phase.space if once else phase.extents
        count = prod(extent for extent, stride in zip(extents, strides, strict=True) if stride)
        dtype = bound.types.get(name) or between.get(known)
        total += count * (dtype.nbytes if dtype else 1)  # a mask has a byte for each
    return total + sum(view.size * view.dtype.nbytes for view in bound.raw.values())


def _interpret(kernel: KernelSpec, bound: Bound, arrays: dict[str, Array], values: Mapping[str, object]) -> None:
    from fusec.dispatch.interpret_launches import run_phases

    run_phases(kernel, bound, arrays, values)


def _effort(kernel: KernelSpec, bound: Bound) -> float:
    from fusec.dispatch.interpret_launches import phases_effort

    return phases_effort(kernel, bound)


def check(*call: Any) -> None:
    """Look at the indices of a call of a kernel along axes before it runs. Raises IndexOutside or CannotCheck."""
    from fusec.dispatch import checked_axis

    checked_axis.check(*call)


REDUCTION = Kind(
    name="reduction",
    along_axes=True,
    keeps_shape=False,
    overlap="stage outputs",
    bind=bind,
    generate=pipeline.generate,
    program=pipeline.program_of,
    interpret=_interpret,
    effort=_effort,
    describe=_describe,
    canonical=canonical,
    check=check,
    grain=_grain,
    fitted=_fitted,
)
