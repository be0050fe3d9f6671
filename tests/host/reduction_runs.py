"""Reductions as launches: the phases of one as kernels of a target, and what every target must leave in memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from fibers import Buffer, Launch, Output, Workspace
from metal_on_host import packed
from ptx.launch import memory_of, run
from ptx.syntax import Module

from fusec import passes
from fusec.arguments import layouts
from fusec.arguments.layouts import View
from fusec.base.dtypes import from_numpy
from fusec.base.kernel_abi import Kernel, Layout, Slot
from fusec.codegen.c_family.facts import takes_turns
from fusec.compiler import reduction_pipeline
from fusec.compiler.reduction_pipeline import MASK
from fusec.dispatch.engine import read_call
from fusec.dispatch.reductions import bind
from fusec.dispatch.spec import CallOptions
from fusec.ir.interpret_reductions import interpret_reduction
from fusec.ir.loops import Program
from fusec.ir.reductions import AXIS, REDUCED, OneAxis, ReductionIR, chunk_of
from fusec.kernels.reduction_kernel import ReductionKernel
from fusec.kinds.launch import MANY_THREADS, Machine
from fusec.kinds.reduction import Operand, Phase, PhaseRules, phases
from fusec.kinds.rows import RowKind
from fusec.kinds.slots import arrange
from fusec.passes.held_elements import held_bytes
from fusec.passes.phases import in_role
from fusec.passes.reductions import run_on_reduction

Generate = Callable[[Program, Layout], Kernel]


@dataclass(frozen=True)
class Reduced:
    """One reduction of given arrays.

    programs, layouts: of the phases in order. outputs: name -> array of the right shape and dtype. expected: the bits
    that outputs must have.
    """

    name: str
    phases: Sequence[Phase]
    programs: Sequence[Program]
    layouts: Sequence[Layout]
    arrays: Mapping[str, np.ndarray]
    expected: Mapping[str, np.ndarray]
    scalars: Mapping[str, object]
    count: int

    def values(self, at: int, kernel: Kernel) -> list[str | bytes]:
        """The arguments of the kernel of a phase: names of buffers for pointers, and bytes."""
        phase = self.phases[at]
        raw = {name: view_of(array) for name, array in self.arrays.items()}
        known = {AXIS: phase.extents[phase.axis], REDUCED: self.count}
        arguments = arrange(kernel, phase, phase.threads, raw, known)
        assert all(offset == 0 for *_, offset in arguments.pointers), "axes are not reversed here"
        words = arguments.fill({name: 0 for _, name, _ in arguments.pointers}, self.scalars, self.name)
        names = {slot: name for slot, name, _ in arguments.pointers}
        return [
            names[number] if number in names else _bytes(word, slot)
            for number, (word, slot) in enumerate(zip(words, kernel.slots, strict=True))
        ]

    @property
    def buffers(self) -> dict[str, Buffer]:
        """Memory for all launches."""
        made: dict[str, Buffer] = {name: array for name, array in self.arrays.items() if name not in self.expected}
        for phase in self.phases:
            made |= {name: Workspace(shape, dtype.numpy) for name, shape, dtype in phase.made}
        return made | {name: Output(each.shape, each.dtype) for name, each in self.expected.items()}


def _bytes(word: int, slot: Slot) -> bytes:
    nbytes = 8 if slot.dtype.bits == 128 else slot.dtype.nbytes
    return int(word).to_bytes(8, "little", signed=True)[:nbytes]


def view_of(array: np.ndarray) -> View:
    """The array as memory, taken to be aligned."""
    dtype = from_numpy(array.dtype)
    assert dtype is not None
    return View(0, array.shape, array.strides, dtype)


# --- reductions of the IR ----------------------------------------------------------------------------------------


def reduced(
    name: str, reduction: ReductionIR, arrays: Mapping[str, np.ndarray], shape: tuple[int, ...], axes: tuple[int, ...]
) -> Reduced:
    """A reduction written in the IR over given arrays, with the oracle's answer."""
    kept = tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
    written = {param.name: param.dtype.numpy for param in reduction.arrays if param.written}
    whole = reduction.total is None
    outputs = {each: np.zeros(shape if whole else kept, dtype) for each, dtype in written.items()}
    operands = []
    for param in reduction.arrays:
        view = view_of({**arrays, **outputs}[param.name])
        if param.written and not whole:
            steps = iter(view.strides)
            strides = tuple(0 if axis in axes else next(steps) for axis in range(len(shape)))
        else:
            strides = layouts.broadcast_strides(view, shape)
        operands.append(Operand(param.name, view, strides, is_output=param.written))
    parts = () if reduction.total is None else reduction.total.parts
    partials = [(f"_partial{at}", f"_given{at}", dtype) for at, (_, dtype) in enumerate(parts)]
    row = RowKind(reduction.lanes, held=held_bytes(reduction))
    found = phases(shape, axes, operands, PhaseRules(row, partials))
    ready = [run_on_reduction(in_role(reduction, phase.role), passes.run) for phase in found]
    memory: dict[str, np.ndarray] = {**arrays, **outputs}
    for phase, part in zip(found, ready, strict=True):
        stored = {each: np.zeros(phase.space, dtype.numpy) for each, _, dtype in partials}
        memory |= stored if phase is not found[-1] else {}
        follow_the_oracle(phase, part, memory, {REDUCED: prod(shape[axis] for axis in axes)})
        memory |= {given: memory[each] for each, given, _ in partials if each in memory}
    count = prod(shape[axis] for axis in axes)
    return Reduced(name, found, *_on_threads(ready, found), arrays, outputs, {}, count)


def _on_threads(ready: Sequence[ReductionIR], found: Sequence[Phase]) -> tuple[list[Program], list[Layout]]:
    """The programs of phases, and what they are specialised for."""
    pairs = list(zip(ready, found, strict=True))
    return [reduction_pipeline.threaded(*pair) for pair in pairs], [
        reduction_pipeline.layout_of(*pair) for pair in pairs
    ]


def follow_the_oracle(phase: Phase, reduction: ReductionIR, memory: Mapping[str, np.ndarray], scalars: dict) -> None:
    """Run one phase chunk by chunk in the interpreter; `memory` changes in place."""
    extent = phase.extents[phase.axis]
    length = extent if phase.chunks == 1 else chunk_of(reduction.lanes, phase.is_last)
    finished = {name for name in memory if name.startswith("_partial")} | {
        param.name for param in reduction.arrays if param.written and reduction.total is not None
    }
    for number in range(phase.chunks):
        low = number * length
        high = min(low + length, extent)
        extents = (*phase.extents[: phase.axis], high - low, *phase.extents[phase.axis + 1 :])
        given = {}
        for name, strides, offset in phase.operands:
            assert offset == 0, "axes are not reversed here"
            start, shape, steps = low, extents, strides
            if name in finished:
                start, shape, steps = number, extents[: phase.axis] + extents[phase.axis + 1 :], strides
                steps = strides[: phase.axis] + strides[phase.axis + 1 :]
            given[name] = _window(memory[name], start * strides[phase.axis], shape, steps)
        interpret_reduction(reduction, given, scalars, OneAxis(extents, phase.axis, is_last=phase.is_last))


def _window(array: np.ndarray, nbytes: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """Memory of the array, from so many bytes on, seen with other extents and strides."""
    flat = np.lib.stride_tricks.as_strided(array, (array.size and 1,), (array.itemsize,))
    start = flat.__array_interface__["data"][0] + nbytes
    return np.asarray(_At(start, shape, strides, array))


class _At:
    """An address for NumPy."""

    def __init__(self, address: int, shape: tuple[int, ...], strides: tuple[int, ...], owner: np.ndarray) -> None:
        typestr, self.owner = owner.__array_interface__["typestr"], owner
        self.__array_interface__ = {
            "data": (address, False), "shape": shape, "strides": strides, "typestr": typestr, "version": 3,
        }  # fmt: skip


# --- targets -------------------------------------------------------------------------------------------------------


class Texts:
    """The kernels of many reductions, each text once."""

    def __init__(self, runs: Sequence[Reduced], generate: Generate) -> None:
        self.kernels = [
            [generate(program, layout) for program, layout in zip(run.programs, run.layouts, strict=True)]
            for run in runs
        ]
        self.distinct = {kernel.source: kernel for kernels in self.kernels for kernel in kernels}
        self.unit = {source: number for number, source in enumerate(self.distinct)}

    def launches(self, number: int, run: Reduced, *, in_struct: bool, grid: int | None = None) -> list[Launch]:
        """The launches of a reduction. in_struct: values that are no buffers go into one struct, as Metal wants it."""
        made = []
        for at, kernel in enumerate(self.kernels[number]):
            values = run.values(at, kernel)
            if in_struct:
                rest = [(s, v) for s, v in zip(kernel.slots, values, strict=True) if s.kind != "pointer"]
                names = [v for s, v in zip(kernel.slots, values, strict=True) if s.kind == "pointer"]
                values = [*names, packed([s for s, _ in rest], [v for _, v in rest])]  # type: ignore[list-item]
            blocks, threads = blocks_of(kernel, run.phases[at])
            many = blocks if grid is None or takes_turns(run.programs[at]) else min(grid * kernel.cluster, blocks)
            made.append(Launch(kernel.name, many, threads, values, 0, self.unit[kernel.source]))
        return made


def blocks_of(kernel: Kernel, phase: Phase) -> tuple[int, int]:
    """The number of blocks of a launch, and the threads of a block."""
    size, threads = prod(phase.threads), kernel.block or 64
    return size * kernel.cluster if kernel.block else -(-size // threads), threads


def assert_bits(run: Reduced, found: Mapping[str, np.ndarray]) -> None:
    """Every output has the expected bits; one nan is like another."""
    for name, value in run.expected.items():
        other = found[name]
        same = np.frombuffer(value.tobytes(), np.uint8) == np.frombuffer(other.tobytes(), np.uint8)
        if not same.all():
            with np.errstate(all="ignore"):
                differs = ~((value == other) | ((value != value) & (other != other)))
            assert not differs.any(), f"{run.name}: {name} is {other[differs][:4]}, not {value[differs][:4]}"


def run_in_ptx(module: Module, texts: Texts, number: int, run_: Reduced, order: str) -> dict[str, np.ndarray]:
    """The launches of a reduction in the PTX interpreter."""
    memory: dict[str, np.ndarray] = {}
    for name, buffer in run_.buffers.items():
        memory[name] = buffer if isinstance(buffer, np.ndarray) else np.zeros(buffer.shape, buffer.dtype)
    for at, kernel in enumerate(texts.kernels[number]):
        entry = f"kernel_{texts.unit[kernel.source]}"
        values = run_.values(at, kernel)
        names = [each for each in values if isinstance(each, str)]
        held = memory_of(module, entry, [memory[name] for name in names])
        address = dict(zip(names, held.buffers, strict=True))
        given = [address[v].address.to_bytes(8, "little") if isinstance(v, str) else v for v in values]
        blocks, threads = blocks_of(kernel, run_.phases[at])
        many = blocks if takes_turns(run_.programs[at]) else min(2, blocks)
        run(module, entry, many, threads, given, held, 0, order)  # type: ignore[arg-type]
        memory |= {name: address[name].array for name in names}
    return memory


# --- kernels of users --------------------------------------------------------------------------------------------


def called(
    kernel: ReductionKernel,
    *args: object,
    axis: object = None,
    where: np.ndarray | None = None,
    run: Callable[..., Sequence[object]] | None = None,
    machine: Machine = MANY_THREADS,
) -> Reduced:
    """A call of a kernel, with what the CPU gives. run: what the CPU runs in place of the kernel."""
    options = CallOptions(axis, where=True if where is None else where)
    backend, call = read_call(kernel, args, None, options)
    given = call.given(backend)
    inputs = {name: each._replace(pointer=0) for name, each in given.inputs.items()}  # taken to be aligned
    bound = bind(kernel, given._replace(inputs=inputs), machine, None)
    found = kernel.run(args, None, options) if run is None else run(*args)
    expected = {param.name: np.asarray(each) for param, each in zip(kernel.out_params, found, strict=True)}
    arrays = call.inputs if call.mask is None else {**call.inputs, MASK: call.mask}
    ready = [reduction_pipeline.prepared(kernel.definition, bound.request, phase) for phase in bound.launches]
    title = f"{kernel.name} of {bound.types} {bound.shape} along {axis}"
    return Reduced(
        title, bound.launches, *_on_threads(ready, bound.launches), arrays, expected, call.values, bound.count
    )
