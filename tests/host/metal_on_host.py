"""Runs emitted Metal on the CPU: many kernels in one translation unit, compiled by clang with metal_on_host.hpp.

Element-wise kernels (`MetalOnHost`) run in a plain loop over threads. Programs of a threadgroup, which have barriers,
threadgroup memory or SIMD-group functions, run as fibers under watch (`BlockPrograms`).
"""

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import fibers
import numpy as np
from arguments import encode, value_of
from fibers import Argument, Extent, Launch, Programs
from guarded import Guarded, KernelFault, in_child

from fusec.base.kernel_abi import Kernel, Slot
from fusec.ir.loops import Program

HERE = Path(__file__).parent
NAMES = [f"clang++-{version}" for version in range(24, 16, -1)]  # older ones have no half on every machine
CLANG = os.environ.get("FUSEC_CLANG") or next((path for path in map(shutil.which, NAMES) if path), None)
FLAGS = (
    "-std=c++17",
    "-O1",
    "-fPIC",
    "-shared",
    "-nostdinc",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-fsigned-char",
)
STRICT = ("-Wno-everything", "-Werror=implicit-function-declaration", "-Werror=double-promotion")
SANITIZED = (
    "-fsanitize=undefined,float-cast-overflow",
    "-fno-sanitize=alignment,function,vptr",
    "-fno-sanitize-recover=all",
)
BUFFERS = 31
ORDERS = (0, 1, 2)

SHARED_LIMIT = 32 << 10  # bytes of threadgroup memory
NEEDS_BLOCKS = re.compile(r"\b(threadgroup|threadgroup_barrier|simdgroup_barrier|simd_\w+)\b")
POSITIONS = frozenset(
    """thread_position_in_grid thread_position_in_threadgroup threadgroup_position_in_grid threads_per_threadgroup
    threadgroups_per_grid threads_per_grid thread_index_in_threadgroup thread_index_in_simdgroup
    simdgroup_index_in_threadgroup simdgroups_per_threadgroup threads_per_simdgroup""".split()
)

_HEAD = re.compile(r"(?:\[\[max_total_threads_per_threadgroup\((\d+)\)\]\]\s*)?\bkernel\s+void\s+(\w+)\s*\(")
_VARIABLE = re.compile(
    r"((?:^|[;{}])\s*)threadgroup\s+(?:alignas\((\w+)\)\s*)?([\w\s:<>]+?)\s*\b(\w+)\s*((?:\[[^\]]*\]\s*)*);",
    re.MULTILINE,
)
_SIGNATURE = re.compile(r"^kernel void (\w+)\(\n(.*?)\)\n\{", re.MULTILINE | re.DOTALL)
_PARAMETER = re.compile(r"(.+?)(\w+) \[\[(\w+)(?:\((\d+)\))?\]\]")


class MetalError(AssertionError):
    """The text is not what Metal accepts."""


def _wrapper(kernel: Kernel, number: int) -> str:
    """An entry that takes buffers by index and runs every thread of a grid."""
    found = _SIGNATURE.search(kernel.source)
    assert found is not None, "a source has one kernel"
    arguments, seen = [], set()
    for line in found[2].split(",\n"):
        parsed = _PARAMETER.fullmatch(line.strip())
        assert parsed is not None, f"cannot read the parameter {line}"
        c_type, name, attribute, index = parsed[1].strip(), parsed[2], parsed[3], parsed[4]
        match attribute:
            case "buffer":
                if int(index) >= BUFFERS or index in seen:
                    raise MetalError(f"buffer({index}) of {name} is out of range or taken")
                seen.add(index)
                qualified = c_type.replace(f"{kernel.name}_arguments", f"emitted_{number}::{kernel.name}_arguments")
                pointer = qualified[:-1] + "*" if qualified.endswith("&") else qualified
                arguments.append(f"{'*' * qualified.endswith('&')}({pointer})buffers[{index}]")
            case "thread_position_in_grid":
                arguments.append("uint2{at % width, at / width}" if c_type == "uint2" else "at")
            case "threads_per_grid":
                arguments.append("uint2{width, height}")
            case _:
                raise MetalError(f"unknown attribute {attribute}")
    return f"""
extern "C" void kernel_{number}(uint width, uint height, int order, void** buffers) {{
    const uint total = width * height;
    for (uint n = 0; n < total; ++n) {{
        const uint at = order == 0 ? n : order == 1 ? total - 1 - n : (uint)(n * 7919ul % total);
        emitted_{number}::{kernel.name}({", ".join(arguments)});
    }}
}}"""


def translation_unit(kernels: Sequence[Kernel] | Mapping[int, Kernel]) -> str:
    """The kernels as C++, each in a namespace of its own, with an entry ``kernel_N`` for each."""
    numbered = kernels.items() if isinstance(kernels, Mapping) else enumerate(kernels)
    parts = [f'#include "{HERE / "metal_on_host.hpp"}"']
    for number, kernel in numbered:
        text = kernel.source.replace("#include <metal_stdlib>\n", "")
        for name in re.findall(r"device complex64\* (\w+) \[\[", text):
            text = re.sub(
                rf"^( +)((?:\*?{name}\b|\*?fusec_moved\({name},).*?) = (.*);$",
                r"\1host_store(&\2, \3);",
                text,
                flags=re.M,
            )
        text = text.replace("struct complex64 { float re, im; };\n", "")
        text = re.sub(r" \[\[\w+(\(\d+\))?\]\]", "", text)
        parts.append(
            f'namespace emitted_{number} {{\n#line 1 "{kernel.name}.metal"\n{text}}}{_wrapper(kernel, number)}'
        )
    return "\n".join(parts)


def _parameters(source: str, start: int) -> list[str]:
    """The texts of the parameters that start there, after the opening parenthesis."""
    depth, end, cuts = 1, start, [start - 1]
    while depth:
        match source[end]:
            case "(" | "[" | "{" | "<":
                depth += 1
            case ")" | "]" | "}" | ">":
                depth -= 1
            case "," if depth == 1:
                cuts.append(end)
        end += 1
    cuts.append(end - 1)
    return [source[a + 1 : b].strip() for a, b in pairwise(cuts)]


def _bound(name: str, parameters: Sequence[str], section: str) -> tuple[list[str], list[str]]:
    """What an entry passes for its parameters, and the threadgroup variables that those need."""
    arguments, variables, seen = [], [], set()
    for text in parameters:
        parsed = _PARAMETER.fullmatch(re.sub(r"\s+", " ", text))
        if parsed is None:
            raise MetalError(f"{name}: parameter without an attribute: {text}")
        c_type, attribute, index = parsed[1].strip(), parsed[3], parsed[4]
        if index is not None:
            if (attribute, index) in seen or int(index) >= BUFFERS:
                raise MetalError(f"{name}: {attribute}({index}) is out of range or taken")
            seen.add((attribute, index))
        match attribute:
            case "buffer" if c_type.endswith("&"):
                arguments.append(f"*({c_type[:-1]}*)buffers[{index}]")
            case "buffer":
                arguments.append(f"({c_type})buffers[{index}]")
            case "threadgroup":
                row = f'{{"{parsed[2]}", 0, 16, {int(index) + 1}, 0}}'
                mark = f'__attribute__((section("{section}"), used))'
                variables.append(f"static fiber_variable {name}_{parsed[2]}_place {mark} = {row};")
                arguments.append(f"({c_type}){name}_{parsed[2]}_place.address")
            case position if position in POSITIONS:
                arguments.append(f"host_{position}()")
            case _:
                raise MetalError(f"{name}: unknown attribute {attribute}")
    return arguments, variables


def _without_attributes(text: str) -> str:
    return re.sub(r"\s*\[\[\w+(\(\d+\))?\]\]", "", text.replace("#include <metal_stdlib>\n", "\n"))


def _checkable(source: str) -> str:
    """The text for clang with address spaces: variables become references, structs may be loaded from any space.

    Clang copies no struct between address spaces, and Metal does: so structs get constructors, and stores are calls.
    """
    reference = r"\1typedef \3 \4_type\5; threadgroup \4_type& \4 = *(threadgroup \4_type*)0;"
    text = _VARIABLE.sub(reference, source).replace("struct complex64 { float re, im; };", "")
    structs = [*re.findall(r"\bstruct (\w+)\s*\{", text), "complex64"]
    for name in structs:
        loads = " ".join(f"{name}(const {space} {name}&);" for space in ("device", "constant", "threadgroup"))
        more = (
            f"{name}() = default; {name}(const {name}&) = default; {name}& operator=(const {name}&) = default; {loads}"
        )
        text = re.sub(rf"(struct {name}\s*\{{)", rf"\1 {more} template <class... A> {name}(A... a);", text)
        for held in re.findall(rf"\b(?:device|threadgroup) {name}\s*\*?\s*(\w+)\s*(?:\[|,|\)|;|=)", source):
            place = rf"\*?(?:{held}\b|fusec_moved\({held}, [^;=]*\))(?:\[[^;=]*\])?"
            store = rf"((?:^|[;{{}})])\s*)({place}) = ([^;]*);"
            text = re.sub(store, r"\1host_assign(\2, \3);", text, flags=re.MULTILINE)
    return text


def block_unit(sources: Sequence[str], check: bool) -> str:
    """Texts as C++, each in a namespace of its own; with ``blocks_NUMBER_NAME``, unless to `check` only."""
    parts = ["#define HOST_FIBERS", "" if check else "#define HOST_FLAT", f'#include "{HERE / "metal_on_host.hpp"}"']
    for number, source in enumerate(sources):
        heads = list(_HEAD.finditer(source))
        spans = {head[2]: (head.end(), fibers.end_of_body(source, head.end())) for head in heads}
        prefix, entries = f"fiber_list_{number}_", []

        def variable(found: re.Match[str], spans: dict[str, tuple[int, int]] = spans, prefix: str = prefix) -> str:
            owner = next((entry for entry, (start, end) in spans.items() if start < found.start() < end), None)
            if owner is None:
                raise MetalError(f"threadgroup variable {found[4]} outside of a kernel")
            dims = re.sub(r"\s", "", found[5])
            return found[1] + fibers.placed(found[4], found[3], dims, found[2] or "1", prefix + owner)

        for head in heads:
            name, section = head[2], prefix + head[2]
            arguments, variables = _bound(name, _parameters(source, head.end()), section)
            call = f"static void {name}_body(void** buffers) {{ {name}({', '.join(arguments)}); }}"
            entries += [*variables, call, fibers.entry(f"blocks_{number}_{name}", f"{name}_body", section, prefix)]
        text = _without_attributes(_checkable(source) if check else _VARIABLE.sub(variable, source))
        if not check:
            text = text.replace("struct complex64 { float re, im; };", "")
        title = heads[0][2] if heads else "device"
        parts += [f'namespace emitted_{number} {{\n#line 1 "{title}.metal"\n{text}\n', *([] if check else entries), "}"]
    return "\n".join(parts)


class BlockPrograms(Programs):
    """Metal texts with programs of a threadgroup, compiled together for the CPU.

    A launch's grid counts threadgroups; its args are bound to buffers 0, 1, ...; its `shared` gives the bytes of each
    ``[[threadgroup(n)]]``. Raises MetalError where Metal would not accept a text.
    """

    def __init__(self, sources: Sequence[str], folder: Path, shared_limit: int = SHARED_LIMIT) -> None:
        assert CLANG is not None, "clang is missing"
        self._bounds = [{head[2]: int(head[1] or 1024) for head in _HEAD.finditer(source)} for source in sources]
        flags = [*(flag for flag in FLAGS if flag != "-shared"), *STRICT, "-fno-exceptions"]
        checked, text, compiled, library = (folder / f"blocks{end}" for end in ("_checked.cpp", ".cpp", ".o", ".so"))
        checked.write_text(block_unit(sources, check=True))
        text.write_text(block_unit(sources, check=False))
        watched = [*fibers.SANITIZED, "-fno-sanitize=function", "-g1", "-gdwarf-4", "-c", "-o", str(compiled)]
        for options in ([*flags, "-fsyntax-only", str(checked)], [*flags, *watched, str(text)]):
            done = subprocess.run([CLANG, *options], capture_output=True, text=True, check=False)
            if done.returncode:
                raise MetalError(done.stderr[:4000])
        fibers.link(CLANG, compiled, library, fibers.runtime())
        super().__init__(library, [list(each) for each in self._bounds], shared_limit)

    def _call(self, launch: Launch, guarded: Mapping[str, Guarded], order: int, poison: int) -> Callable[[], None]:
        (x, y, z), most = fibers.three(launch.block), self._bounds[self.unit_of(launch)][launch.entry]
        if x * y * z > most:
            raise KernelFault(f"{launch.entry}: a threadgroup of {x * y * z} threads, and {most} is the most")
        return super()._call(launch, guarded, order, poison)

    def encoded(self, value: Argument, guarded: Mapping[str, Guarded]) -> tuple[int, object]:
        match value:
            case str():
                return guarded[value].address, None
            case bytes():
                return fibers.stored(value)
            case _:
                return fibers.stored(value.tobytes())


def block_args(
    kernel: Kernel,
    program: Program,
    arrays: Mapping[str, np.ndarray],
    scalars: Mapping[str, object],
    shape: tuple[int, ...],
) -> list[Argument]:
    """The args of a `Launch` of an emitted kernel: names of arrays for its buffers, then the struct of all values."""
    held = {name: SimpleNamespace(array=array) for name, array in arrays.items()}
    names = [slot.param for slot in kernel.slots if slot.kind == "pointer"]
    rest = [slot for slot in kernel.slots if slot.kind != "pointer"]
    return [*names, packed(rest, [value_of(slot, held, scalars, shape, program) for slot in rest])]


def packed(slots: Sequence[Slot], values: Sequence[bytes]) -> bytes:
    """Values as the members of a struct."""
    text = b""
    for slot, value in zip(slots, values, strict=True):
        unit = slot.dtype.nbytes // (2 if slot.dtype.is_complex else 1)
        text += bytes(-len(text) % unit) + value
    return text.ljust((len(text) + 7) // 8 * 8, b"\0")


class MetalOnHost:
    """Kernels compiled for the CPU. Raises MetalError where Metal would not accept the text.

    Those whose text has barriers, threadgroup memory or SIMD-group functions are block programs, and always watched.
    """

    def __init__(self, kernels: Sequence[Kernel], folder: Path, sanitized: bool = False) -> None:
        assert CLANG is not None, "clang is missing"
        self.kernels = list(kernels)
        numbers = [number for number, kernel in enumerate(kernels) if NEEDS_BLOCKS.search(kernel.source)]
        self._units = {number: unit for unit, number in enumerate(numbers)}
        self._blocks = BlockPrograms([kernels[number].source for number in numbers], folder) if numbers else None
        plain = {number: kernel for number, kernel in enumerate(kernels) if number not in self._units}
        source = folder / f"unit_{'ubsan' if sanitized else 'plain'}.cpp"
        source.write_text(translation_unit(plain))
        library = source.with_suffix(".so")
        options = [*FLAGS, *STRICT, *(SANITIZED if sanitized else ())]
        trap = ["-fsanitize-trap=undefined,float-cast-overflow"] if sanitized else []
        command = [CLANG, *options, *trap, str(source), "-o", str(library)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise MetalError(done.stderr[:4000])
        self._library = ctypes.CDLL(str(library))

    def run(
        self,
        number: int,
        program: Program,
        arrays: Mapping[str, np.ndarray],
        scalars: Mapping[str, object],
        shape: tuple[int, ...],
        order: int = 0,
        blocks: int = 3,
        threads: int = 32,
        shared: Extent = 0,
    ) -> dict[str, np.ndarray]:
        """Dispatch one kernel on copies of the arrays, with a few threads too many, and return the copies.

        blocks, threads, shared: of block programs: threadgroups, their threads, bytes of each ``[[threadgroup(n)]]``.
        """
        kernel = self.kernels[number]
        if self._blocks is not None and number in self._units:
            args = block_args(kernel, program, arrays, scalars, shape)
            launch = Launch(kernel.name, blocks, threads, args, shared, self._units[number])
            return self._blocks.run(launch, arrays, [order])
        guarded = {name: Guarded(array) for name, array in arrays.items()}
        encoded = encode(kernel, program, guarded, scalars, shape)
        pointers = [value for slot, value in zip(kernel.slots, encoded, strict=True) if slot.kind == "pointer"]
        rest = [(slot, value) for slot, value in zip(kernel.slots, encoded, strict=True) if slot.kind != "pointer"]
        struct = packed([slot for slot, _ in rest], [value for _, value in rest])
        block = ctypes.create_string_buffer(struct, len(struct))
        addresses = [int.from_bytes(value, "little") for value in pointers]
        buffers = (ctypes.c_void_p * (len(addresses) + 1))(*addresses, ctypes.addressof(block))
        size = int(np.prod(shape, dtype=np.int64))
        width = 7 if kernel.layout.wide else size + 3
        height = (size + 13) // 7 if kernel.layout.wide else 1
        entry = getattr(self._library, f"kernel_{number}")
        in_child(lambda: entry(ctypes.c_uint(width), ctypes.c_uint(height), ctypes.c_int(order), buffers))
        return {name: each.array for name, each in guarded.items()}
