"""Runs block programs: kernels with barriers, shared memory and warp exchanges, each thread a fiber, blocks one by one.

The texts are compiled by `cuda_on_host.BlockPrograms` and `metal_on_host.BlockPrograms`; this module builds the runtime
that they call (fibers_*.cpp), gives them memory, and runs the launches in every order. What is found, and raised as
KernelFault with the place in the text, the block and the thread:

- races on shared and device memory, within a block and between blocks, whatever order the threads happened to run in:
  two accesses that no barrier, warp synchronisation, or fence-atomic-atomic-fence orders (PTX asks for both fences);
- barriers and warp functions in divergent flow, wrong masks, lanes read that take no part;
- accesses outside a buffer or a shared variable, by a single byte; misaligned ones; shared memory beyond the limit;
- reads of memory that was never written, and results that depend on what it held;
- undefined behaviour of C++, as UBSan sees it; a launch that does not end; results that depend on the order of threads.
"""

import atexit
import ctypes
import functools
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from guarded import Guarded, KernelFault, in_child

HERE = Path(__file__).parent
GXX = shutil.which("g++")
ORDERS = (0, 1, 2, 3)  # ascending, descending, and shuffles by seed, in which threads switch at atomics too
POISONS = (0xFF, 0x3C)  # nan, -1; and a small positive number, in turn
SANITIZED = ("-fsanitize=thread,undefined,float-cast-overflow", "-fno-sanitize=vptr", "-fno-sanitize-recover=all")
RUNTIME = ("fibers_schedule.cpp", "fibers_memory.cpp", "fibers_report.cpp")

Extent = int | tuple[int, ...]


@dataclass(frozen=True)
class Output:
    """A buffer that a launch fills: reading it first is a fault, and so is leaving a part of it unwritten."""

    shape: Extent
    dtype: object


@dataclass(frozen=True)
class Workspace:
    """A buffer that launches use between them: reading what was not written is a fault. It is no result."""

    shape: Extent
    dtype: object


Buffer = np.ndarray | Output | Workspace
Argument = str | np.generic | bytes  # str: the name of a buffer


@dataclass(frozen=True)
class Launch:
    """One launch. args: names of buffers, NumPy scalars, or the bytes of a struct, in the order of the parameters.

    grid, block: up to three extents; grid counts blocks. shared: bytes of dynamic shared memory; for Metal the bytes of
    each ``[[threadgroup(n)]]`` in order. unit: which of the texts has the entry; None if only one has one of this name.
    """

    entry: str
    grid: Extent
    block: Extent
    args: Sequence[Argument]
    shared: Extent = 0
    unit: int | None = None


def build_runtime(folder: Path) -> Path:
    """Compile the fiber runtime into a folder, unless it is there already."""
    assert GXX is not None, "g++ is missing"
    out = folder / "libfibers.so"
    command = [GXX, "-std=c++17", "-O2", "-g1", "-fPIC", "-shared", "-Wno-builtin-declaration-mismatch"]
    if not out.exists():
        subprocess.run([*command, *(str(HERE / name) for name in RUNTIME), "-o", str(out)], check=True)
    return out


@functools.cache
def runtime() -> Path:
    """The fiber runtime as a shared library, built once in a process."""
    folder = tempfile.mkdtemp(prefix="fibers_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return build_runtime(Path(folder))


def link(compiler: str, compiled: Path, library: Path, runtime: Path) -> None:
    """Make a library of compiled programs, which finds the runtime where it is now."""
    command = [compiler, "-shared", str(compiled), str(runtime), f"-Wl,-rpath,{runtime.parent}", "-o", str(library)]
    subprocess.run(command, check=True)


def three(extent: Extent) -> tuple[int, int, int]:
    """The extents along x, y, z."""
    given = (extent,) if isinstance(extent, int) else tuple(extent)
    return (*given, 1, 1, 1)[:3]  # type: ignore[return-value]


def blanked(source: str) -> str:
    """The text with spaces for its comments and strings; every character stays in its place."""
    literal = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)
    return literal.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)


def end_of_body(source: str, start: int) -> int:
    """Where the body of a function ends whose parameters start there."""
    depth = 0
    for found in re.finditer(r"[{}]", blanked(source)[start:]):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return start + found.end()
    raise AssertionError("a function without an end")


def placed(name: str, kind: str, extents: str, align: str, section: str) -> str:
    """A shared variable as a reference to where the runtime puts it, listed in a section of the library."""
    fixed = f"typedef {kind} {name}_type{extents}; " if extents != "[]" else f"typedef {kind} {name}_type; "
    size, dynamic = (f"sizeof({name}_type)", 0) if extents != "[]" else ("0", 1)
    row = f'{{"{name}", {size}, {align} > alignof({name}_type) ? {align} : alignof({name}_type), {dynamic}, 0}}'
    mark = f'__attribute__((section("{section}"), used))'
    use = f"{name}_type& {name} = *({name}_type*)" if extents != "[]" else f"{name}_type* {name} = ({name}_type*)"
    return f"{fixed}static fiber_variable {name}_place {mark} = {row}; {use}{name}_place.address;"


def entry(symbol: str, body: str, own: str, common: str, cluster: int = 1) -> str:
    """The function that runs a kernel. body: what runs one thread; own, common: sections that list shared variables;
    cluster: blocks that run together.
    """
    lists = [f"__{edge}_{section}" for section in (own, common) for edge in ("start", "stop")]
    return "\n".join(
        [
            *(f'extern "C" fiber_variable {each}[] __attribute__((weak, visibility("hidden")));' for each in lists),
            f"static const fiber_program {symbol}_program = {{{body}, {', '.join(lists)}, {cluster}}};",
            f'extern "C" unsigned long {symbol}_shared() {{ return fiber_shared_bytes(&{symbol}_program); }}',
            f'extern "C" const char* {symbol}(HOST_BLOCKS) {{',
            f"    return fiber_run(&{symbol}_program, grid, block, dynamic, limit, order, poison, arguments);\n}}",
        ]
    )


def locate(library: Path, said: str) -> str:
    """The report with the addresses in it replaced by places in the text."""

    def place(found: re.Match[str]) -> str:
        command = ["addr2line", "-i", "-e", str(library), f"0x{found[1]}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        places = [line.split(" ")[0].rsplit("/", 1)[-1] for line in done.stdout.splitlines()]
        return next((each for each in places if ".hpp" not in each and "?" not in each), "a place without a line")

    return re.sub(r"<at ([0-9a-f]+)>", place, said)


class Programs:
    """Compiled block programs.

    entries: names of the kernels in each text; the library exports ``blocks_<number of the text>_<name>`` for each.
    """

    def __init__(self, library: Path, entries: Sequence[Sequence[str]], shared_limit: int) -> None:
        self.path = library
        self.shared_limit = shared_limit
        self.seconds = 60  # of CPU time for the launches in one order
        self._entries = [list(names) for names in entries]
        self._runtime = ctypes.CDLL(str(runtime()))
        self._library = ctypes.CDLL(str(library))

    def run(
        self,
        launches: Sequence[Launch] | Launch,
        buffers: Mapping[str, Buffer],
        orders: Sequence[int] = ORDERS,
        unordered: Sequence[str] = (),
        packed: bool = False,
    ) -> dict[str, np.ndarray]:
        """Run launches one after the other on copies of the buffers, in every order; the final copies by name.

        unordered: buffers whose values may depend on the order of threads, such as float sums by atomics. packed:
        buffers begin where elements may, and not only at multiples of 16 bytes.
        Raises KernelFault; also if the orders, or the bytes in memory that nobody wrote, make a difference.
        """
        launches = [launches] if isinstance(launches, Launch) else list(launches)
        first: dict[str, np.ndarray] = {}
        for turn, order in enumerate(orders):
            poison = POISONS[turn % len(POISONS)]
            got = self._run_once(launches, buffers, order, poison, packed)
            for name, array in got.items():
                if name in first and name not in unordered and not isinstance(buffers[name], Workspace):
                    _assert_same(first[name], array, f"{name} in order {orders[0]} and order {order}")
            first = first or got
        return first

    def _run_once(
        self, launches: Sequence[Launch], buffers: Mapping[str, Buffer], order: int, poison: int, packed: bool
    ) -> dict[str, np.ndarray]:
        guarded = {}
        for name, each in buffers.items():
            is_given, aligned = isinstance(each, np.ndarray), each.dtype.itemsize if packed else 16
            array = each if is_given else np.empty(each.shape, each.dtype)
            guarded[name] = Guarded(array, None if is_given else poison, aligned)
        calls = [self._call(launch, guarded, order, poison) for launch in launches]

        def work() -> None:
            self._runtime.fiber_report_signals(self.seconds)
            for name, each in guarded.items():
                words = [ctypes.c_size_t(word) for word in (each.start, each.nbytes, each.low, each.high)]
                self._runtime.fiber_add_buffer(name.encode(), *words, isinstance(buffers[name], np.ndarray))
            for call in calls:
                call()

        try:
            in_child(work)
        except KernelFault as fault:
            said = locate(self.path, str(fault))
            raise KernelFault(f"{', '.join(each.entry for each in launches)}, order {order}: {said}") from None
        return {name: each.array for name, each in guarded.items()}

    def _call(self, launch: Launch, guarded: Mapping[str, Guarded], order: int, poison: int) -> Callable[[], None]:
        entry = getattr(self._library, f"blocks_{self.unit_of(launch)}_{launch.entry}")
        entry.restype = ctypes.c_char_p
        values = [self.encoded(each, guarded) for each in launch.args]
        pointers = (ctypes.c_void_p * (len(values) + 1))(*(address for address, _ in values))
        sizes = (launch.shared,) if isinstance(launch.shared, int) else tuple(launch.shared)
        dynamic = (ctypes.c_ulong * max(len(sizes), 1))(*sizes)
        grid, block = ((ctypes.c_uint * 3)(*three(each)) for each in (launch.grid, launch.block))
        limit = ctypes.c_ulong(self.shared_limit)

        def call(_owners: object = values) -> None:
            said = entry(grid, block, dynamic, limit, order, poison, pointers)
            if said:
                raise KernelFault(said.decode())

        return call

    def unit_of(self, launch: Launch) -> int:
        """Which of the texts a launch means."""
        having = [number for number, names in enumerate(self._entries) if launch.entry in names]
        assert launch.unit in having or (launch.unit is None and len(having) == 1), (
            f"{launch.entry} is in texts {having}"
        )
        return having[0] if launch.unit is None else launch.unit

    def encoded(self, value: Argument, guarded: Mapping[str, Guarded]) -> tuple[int, object]:
        """The address that the entry reads an argument from, and what must live as long."""
        raise NotImplementedError


def stored(data: bytes) -> tuple[int, object]:
    """Bytes in memory: their address, and what owns them."""
    owner = ctypes.create_string_buffer(data, max(len(data), 1))
    return ctypes.addressof(owner), owner


def _assert_same(a: np.ndarray, b: np.ndarray, what: str) -> None:
    left, right = (np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in (a, b))
    differs = np.flatnonzero(left != right)
    if differs.size:
        at = int(differs[0]) // a.itemsize
        pair = a.reshape(-1)[at], b.reshape(-1)[at]
        raise KernelFault(
            f"{what} differ at element {at}: {pair[0]!r}, {pair[1]!r}: it was left unwritten, depends on memory that"
            " nobody wrote, or on the order of threads"
        )
