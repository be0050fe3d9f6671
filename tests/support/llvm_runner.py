"""Compiles LLVM kernels with llvmlite and runs them on NumPy arrays: what a runtime does, without its speed."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Mapping, Sequence
from functools import cache

import llvmlite.binding as llvm
import numpy as np

from fusec.base.kernel_abi import Kernel, Layout, Slot, Step
from fusec.codegen.llvm import PASSES
from fusec.ir.loops import Program, ScalarParam

_numbers = itertools.count()


@cache
def target_machine() -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, codemodel="jitdefault",
        jit=True,
    )  # fmt: skip


@cache
def engine() -> llvm.ExecutionEngine:
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), target_machine())


def optimised(source: str) -> llvm.ModuleRef:
    machine = target_machine()
    module = llvm.parse_assembly(source)
    module.triple = llvm.get_process_triple()
    module.data_layout = str(machine.target_data)
    module.verify()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
    passes = llvm.create_new_module_pass_manager()
    for name in PASSES:
        getattr(passes, f"add_{name}_pass")()
    passes.run(module, builder)
    return module


_addresses: dict[str, int] = {}


def address_of(kernel: Kernel) -> int:
    """The entry point of the kernel; no other kernel of the process may have its name. Texts are compiled once."""
    text = kernel.source.replace(kernel.name, "\0")
    if text not in _addresses:
        compiled = llvm.ObjectFileRef.from_data(target_machine().emit_object(optimised(kernel.source)))
        engine().add_object_file(compiled)
        engine().finalize_object()
        _addresses[text] = engine().get_function_address(kernel.name)
    return _addresses[text]


def fresh_symbol(stem: str = "k") -> str:
    return f"{stem}_{next(_numbers)}"


def step_of(array: np.ndarray, axis: int, shape: Sequence[int]) -> Step:
    missing = len(shape) - array.ndim
    if axis < missing or (array.shape[axis - missing] == 1 and shape[axis] != 1):
        return Step.ZERO
    return Step.UNIT if array.strides[axis - missing] == array.itemsize else Step.ANY


def layout_of(program: Program, arrays: Mapping[str, np.ndarray], shape: Sequence[int], **flags: object) -> Layout:
    """The layout of these arrays, without merging axes."""
    steps, raw = [], []
    for param in program.arrays:
        array = arrays[param.name]
        if param.raw:
            raw.append((param.name, (array.ndim, array.flags.c_contiguous)))
        else:
            steps.append((param.name, tuple(step_of(array, axis, shape) for axis in range(len(shape)))))
    return Layout(len(shape), tuple(steps), tuple(raw), **flags)


def words(slot: Slot, program: Program, arrays: Mapping, scalars: Mapping, shape: Sequence[int]) -> int:
    """The 64 bits of one argument."""
    match slot.kind:
        case "size":
            return int(np.prod(shape))
        case "extent":
            return shape[slot.axis]
        case "pointer":
            return arrays[slot.param].__array_interface__["data"][0]
        case "stride":
            array = arrays[slot.param]
            axis = slot.axis - (len(shape) - array.ndim)
            return array.strides[axis]
        case "raw_size":
            return arrays[slot.param].size
        case "raw_extent":
            return arrays[slot.param].shape[slot.axis]
        case "raw_stride":
            return arrays[slot.param].strides[slot.axis]
    param = next(p for p in program.params if p.name == slot.param)
    assert isinstance(param, ScalarParam)
    raw = np.asarray(scalars[slot.param], param.dtype.numpy).tobytes().ljust(16, b"\0")
    return int.from_bytes(raw[8 * slot.axis : 8 * slot.axis + 8], "little")


def run(
    kernel: Kernel,
    program: Program,
    arrays: Mapping[str, np.ndarray],
    scalars: Mapping[str, object],
    shape: Sequence[int],
    cuts: Sequence[int] = (),
    positions: int | None = None,
) -> None:
    """Run the kernel over all positions (as many as `shape` has, if it is not said), in ranges parted at `cuts`."""
    function = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(address_of(kernel))
    values = [words(slot, program, arrays, scalars, shape) & (1 << 64) - 1 for slot in kernel.slots]
    slots = (ctypes.c_uint64 * max(1, len(values)))(*values)
    edges = [0, *cuts, int(np.prod(shape)) if positions is None else positions]
    for low, high in itertools.pairwise(edges):
        function(low, high, ctypes.addressof(slots))
