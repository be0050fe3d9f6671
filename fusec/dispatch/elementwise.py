"""Element-wise kernels: the launch of their calls, and how it is shown."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from math import inf, prod
from typing import TYPE_CHECKING, Any

from fusec.arguments import layouts
from fusec.arguments.layouts import Shape, View
from fusec.arguments.operands import Array, memory_order
from fusec.base.diagnostics import counted
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Kernel, strides_in_order
from fusec.base.records import replace
from fusec.base.rounding_mode import default_rounding
from fusec.base.source import Span
from fusec.compiler import pipeline
from fusec.compiler.lowering import lower_program
from fusec.compiler.pipeline import Source, Specialisation
from fusec.dispatch.shown import Showing
from fusec.dispatch.spec import STRIDES, Bound, Given, KernelSpec, Kind, Lines, fp_line
from fusec.environment import debug
from fusec.errors.arguments import (
    OutputSizeUndecided,
    OutShapeMismatch,
    ShapesDoNotBroadcast,
    SizeNotAllowed,
    SizeUndecided,
)
from fusec.errors.checks import BlockMisused
from fusec.errors.python import StencilShapes
from fusec.kinds.elementwise import Operands, launch_over
from fusec.kinds.launch import Launch, Machine, Request

if TYPE_CHECKING:
    from fusec.ir.loops import Program

_LINE = 64  # bytes
_ROW = 256  # elements of a row from which on stores go around the caches
_ROW_OF_LINES = 64  # the same for rows of whole cache lines


def bind(kernel: KernelSpec, given: Given, machine: Machine, known: Mapping[str, DType] | None) -> Bound:
    """Bind types, broadcast, and lay out the space. Raises for shapes and types that do not fit together.

    known: the types of all parameters, for calls that are only shown.
    """
    types = given.types(kernel) if known is None else known
    views = dict(given.inputs)
    if given.outputs is not None:
        views |= {param.name: each for param, each in zip(kernel.out_params, given.outputs, strict=True)}
    shapes = {name: view.shape for name, view in views.items()}
    shape = loop_shape(kernel, shapes, given.options.size)
    _check_shapes(kernel, shapes, shape, given.options.size)
    orders = {}
    if given.outputs is None:
        order, plain = _order(kernel, given.inputs, shape), tuple(range(len(shape)))
        for param in kernel.out_params:
            dtype, axes = types[param.name], plain if param.raw else order
            views[param.name] = View(0, shape, strides_in_order(shape, axes, dtype.nbytes), dtype)
            if axes != plain:
                orders[param.name] = axes
    named = [(param, views[param.name]) for param in kernel.params if param.name in views]
    operands = Operands(
        tuple((param.name, view) for param, view in named if not param.raw),
        tuple((param.name, view) for param, view in named if param.raw),
        kernel.updated,
    )
    launch = launch_over(
        shape, operands, uses_index=kernel.uses_index, reduce_dims=kernel.reduce_dims, vectors=machine.vectors
    )
    cleared = frozenset(param.name for param in kernel.out_params if param.raw)
    request = Request(tuple(types.items()), given.numbers, kernel.fp)
    shapes_made = (shape,) * kernel.nout
    return Bound(types, shape, shapes_made, (launch,), dict(operands.raw), request, cleared, orders, views, kept=shape)


def loop_shape(kernel: KernelSpec, shapes: Mapping[str, Shape], size: int | Shape) -> Shape:
    """The shape of the iteration space: that of the non-raw arrays, or (size,) if there is none.

    shapes: of arrays, outputs not given left out. size: a shape is that of the space.
    """
    if isinstance(size, tuple):
        return size
    shape: Shape | None = None
    for param in kernel.params:
        each = shapes.get(param.name)
        if each is None or (param.raw and (param.non_const or not kernel.follows_raw)):
            continue
        if size != -1:
            raise SizeNotAllowed(kernel.name, param.name).at()
        joined = each if shape is None else layouts.common_shape(shape, each)
        if isinstance(joined, int):
            assert shape is not None
            if kernel.follows_raw and param.raw:
                raise StencilShapes(kernel.name, param.name, each, shape).at()
            raise ShapesDoNotBroadcast(f"parameter '{param.name}' of kernel '{kernel.name}'", shape, each, joined).at()
        shape = joined
    if size != -1:
        return (size,)
    if shape is None:
        if shapes:
            raise SizeUndecided(kernel.name, "every array argument is raw", "pass size=, the number of elements").at()
        raise SizeUndecided(
            kernel.name, "no argument is an array", "pass an array, e.g. np.asarray(2.0), or size="
        ).at()
    return shape


def _check_shapes(kernel: KernelSpec, shapes: Mapping[str, Shape], shape: Shape, size: int | Shape) -> None:
    """Given outputs have the shape of the space, and raw arrays that follow it; raw ones to allocate need `size=`."""
    if kernel.follows_raw:
        for param in kernel.in_params:
            each = shapes.get(param.name, shape)
            if param.raw and not param.non_const and each != shape:
                raise StencilShapes(kernel.name, param.name, each, shape).at()
    for param in kernel.out_params:
        if param.name not in shapes:
            if param.raw and size == -1:
                raise OutputSizeUndecided(kernel.name, param.name).at()
        elif not param.raw and shapes[param.name] != shape:
            raise OutShapeMismatch(kernel.name, param.name, shapes[param.name], shape).at()


def _order(kernel: KernelSpec, inputs: Mapping[str, View], shape: Shape) -> Shape:
    """The axes of new outputs that are not raw, from outermost to innermost in memory: those of the inputs."""
    walked = [inputs[param.name] for param in kernel.in_params if param.name in inputs and not param.raw]
    return memory_order(shape, [layouts.broadcast_strides(view, shape) for view in walked])


def _fitted(kernel: KernelSpec, bound: Bound) -> Bound:
    """Contiguous outputs that exceed the last cache are written around it, unless their rows are too short."""
    from fusec.runtime.cpu import machine

    outputs = [bound.views[param.name] for param in kernel.out_params if not param.raw]
    if sum(view.size * view.dtype.nbytes for view in outputs) <= machine.last_level_cache_bytes():
        return bound
    (launch,) = bound.launches
    if not _fills_lines(launch, [view.dtype.nbytes for view in outputs]):
        return bound
    debug.show(2, f"{kernel.name}: outputs exceed the last-level cache and are written around it")
    return replace(bound, launches=(replace(launch, layout=replace(launch.layout, streaming=True)),))


def _fills_lines(launch: Launch, sizes: Collection[int]) -> bool:
    """Whether most of each row is written in whole cache lines. sizes: bytes of an element of each output."""
    row = launch.extents[-1]
    least = _ROW_OF_LINES if all(row * nbytes % _LINE == 0 for nbytes in sizes) else _ROW
    return launch.layout.has_long_rows or row >= least


# --- code ----------------------------------------------------------------------------------------------------------


def specialisation(request: Request, launch: Launch) -> Specialisation:
    """What the code of a launch is specialised for."""
    return Specialisation(request.types, request.scalars, launch.layout, request.fp)


def _generate(definition: Any, request: Request, launch: Launch, target: str, number: int) -> Kernel:
    assert number == 1, "one launch has one name"
    return pipeline.generate(definition, specialisation(request, launch), target)


def canonical(kernel: KernelSpec, asked: Showing, types: Mapping[str, DType], taken: tuple[str, ...]) -> Bound:
    """A call of contiguous arrays, with one axis or as many as the body names. taken: parameters passed by value."""
    del asked
    arrays = [param for param in kernel.params if param.name not in taken]
    walked = [param.name for param in arrays if not param.raw]
    raw = [param.name for param in arrays if param.raw]
    layout = pipeline.canonical_layout(kernel.definition, types, walked, raw)
    request = Request(tuple(types.items()), frozenset(taken), kernel.fp)
    return Bound(types, (), (), (Launch(layout, (), ()),), {}, request)


@lru_cache(maxsize=64)
@default_rounding()
def _lowered(definition: Source, request: Request, ndims: tuple[tuple[str, int], ...]) -> Program:
    """The program that is interpreted: that of any target, where no axes are merged."""
    from fusec.passes import Facts, run_few

    raw = {name: ndim for name, ndim in ndims if name}
    program = lower_program(definition, dict(request.types), raw, request.scalars)
    return run_few(program, Facts(fp=request.fp, ndims=dict(ndims)))


def _program(kernel: KernelSpec, bound: Bound, ndim: int) -> Program:
    """ndim: axes of the space."""
    raw = tuple((name, len(view.shape)) for name, view in bound.raw.items())
    return _lowered(kernel.definition, bound.request, (("", ndim), *raw))


def _effort(kernel: KernelSpec, bound: Bound) -> float:
    """The interpreter's seconds; infinite for kernels to which it matters that axes are merged."""
    from fusec.ir.axes import knows_axes
    from fusec.ir.effort import program_effort

    (launch,), program = bound.launches, _program(kernel, bound, len(bound.shape))
    merged = len(launch.extents)
    is_merged = kernel.uses_index and merged != len(bound.shape)
    if is_merged and (knows_axes(program) or _program(kernel, bound, merged) != program):
        return inf
    return program_effort(program, prod(bound.shape))


def _interpret(kernel: KernelSpec, bound: Bound, arrays: dict[str, Array], values: Mapping[str, object]) -> None:
    from fusec.ir.interpret import interpret
    from fusec.ir.memory import BlockFault

    program = _program(kernel, bound, len(bound.shape))
    try:
        interpret(program, arrays, values, bound.shape)
    except BlockFault as found:
        raise BlockMisused(kernel.name, found.what).at(line_of(program, found.line)) from None


def line_of(program: Any, line: int) -> Span | None:
    """A line of the user's text. program: of elements, or a reduction."""
    file = program.source
    if file is None or not 0 < line <= len(file.line_starts):
        return None
    start, text = file.line_starts[line - 1], file.line(line)
    indent = len(text) - len(text.lstrip())
    return Span(file, start + indent, start + len(text.rstrip()))


# --- reports -------------------------------------------------------------------------------------------------------


def _describe(kernel: KernelSpec, bound: Bound, compiled: Sequence[Kernel]) -> tuple[int, Lines]:
    """The bytes that a call moves, and how its space is walked."""
    (launch,), (made,) = bound.launches, compiled
    moved, size = _bytes(kernel, made, bound), launch.positions
    lines = [
        ("iteration space", _space(bound.shape, launch, made.block)),
        *((f"'{name}'", f"{STRIDES[row[-1]]} along the innermost axis") for name, row in launch.layout.steps),
        *((f"'{name}'", _raw(launch, name)) for name in bound.raw),
        ("bytes moved", f"{moved:,} ({f'{moved / size:.3g} an element' if size else 'no elements'})"),
        ("code", _code(made)),
        fp_line(kernel),
        *(("note", note) for note in made.notes),
    ]
    return moved, lines


def _space(shape: Shape, launch: Launch, block: int) -> str:
    """block: positions of a block if each element is one, else 0."""
    size = launch.positions
    if block:
        return f"{shape}, {counted(size, 'block')} of {counted(block, 'position')}"
    if shape == launch.extents:
        return f"{shape}, {counted(size, 'element')}"
    return f"{shape} walked as {launch.extents}, {counted(size, 'element')}"


def _raw(launch: Launch, name: str) -> str:
    ndim, contiguous = dict(launch.layout.raw)[name]
    return f"raw, {counted(ndim, 'axis', 'axes')}, {'C-contiguous' if contiguous else 'strided'}"


def _bytes(kernel: KernelSpec, compiled: Kernel, bound: Bound) -> int:
    """Bytes of every array, once; an output whose former content matters counts twice."""
    twice = {param.name for param in kernel.out_params}.intersection(compiled.fills)
    return sum(view.size * view.dtype.nbytes * (2 if name in twice else 1) for name, view in bound.views.items())


def _code(kernel: Kernel) -> str:
    streaming = ", outputs written around the cache" if kernel.layout.streaming else ""
    return f"{counted(kernel.lanes, 'element')} a step, about {counted(kernel.cost, 'operation')} each{streaming}"


ELEMENTWISE = Kind(
    name="elementwise",
    along_axes=False,
    keeps_shape=True,
    overlap="copy inputs",
    bind=bind,
    generate=_generate,
    program=lambda definition, request, launch: pipeline.program_of(definition, specialisation(request, launch)),
    interpret=_interpret,
    effort=_effort,
    describe=_describe,
    canonical=canonical,
    grain=None,
    fitted=_fitted,
)
