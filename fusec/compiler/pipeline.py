"""The stages in order: text -> program -> passes -> kernel of a target -> executable, with the disk cache between.

A hit in the cache needs neither the grammar nor the code generators, so those are imported where they are used.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, get_args

from fusec.base import background
from fusec.base.diagnostics import counted, did_you_mean
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import Fp, Kernel, Layout, Step
from fusec.base.locks import fork_safe, llvm
from fusec.base.recent import Recent
from fusec.base.records import dataclass, replace
from fusec.base.rounding_mode import default_rounding
from fusec.codegen import target_of
from fusec.compiler import disk_cache
from fusec.compiler.lowering import lower_program
from fusec.environment import debug, settings
from fusec.errors.arguments import AxisOutOfRange, UnknownFp
from fusec.errors.base import FusecError
from fusec.version import VERSION

if TYPE_CHECKING:
    from fusec.codegen.generator import Options
    from fusec.ir.loops import Program
    from fusec.passes import Facts, Native, Target
    from fusec.runtime.cpu.engine import Executable

MODES: tuple[Fp, ...] = get_args(Fp)

MAX_AXES = 64  # NumPy's limit
MAX_AXES_SHOWN = 8  # how many to try when no call says
SOURCES = (".py", ".lark", ".json")  # ends of names of files that say what kernels are made
FORMAT = 3  # raise when the meaning of a cached kernel changes without the version changing
STAGES = ("llvmlite.binding", "fusec.passes.blocks", "fusec.codegen.llvm", "fusec.runtime.cpu.engine")
MAX_LOADED = 512  # kernels that new shapes find in memory; the code itself stays there as long as the process lives

Shown = TypeVar("Shown")
Code = TypeVar("Code")
NO_NUMBER = ("F135", "F151")  # what a text says to an array that it takes as a number

_loaded: Recent[object, tuple[Any, Kernel, int]] = Recent(MAX_LOADED)  # machine code, and its size in bytes


class Source(Protocol):
    """A kernel's definition in any language, as data; hashable, and equal if the texts are."""

    @property
    def name(self) -> str:
        """The kernel's name."""

    @property
    def texts(self) -> dict[str, Any]:
        """All fields by name, in a form that JSON can write; "options" are those of the compiler."""

    def __hash__(self) -> int:
        """Equal for equal texts."""


class ParsedSource(Source, Protocol):
    """A definition whose texts can be wrong whatever the types."""

    def read(self) -> object:
        """The syntax tree. Raises the errors of the texts that do not depend on types."""


@dataclass(frozen=True)
class Specialisation:
    """The specialisation of a kernel: dtypes by parameter name, parameters passed by value, memory layout, and what
    its floating-point arithmetic may become.
    """

    types: tuple[tuple[str, DType], ...]
    scalars: frozenset[str]
    layout: Layout
    fp: Fp = "strict"

    @property
    def key(self) -> str:
        """A text that differs for different specialisations."""
        types = ",".join(f"{name}:{dtype}" for name, dtype in self.types)
        return f"{types};{','.join(sorted(self.scalars))};{self.layout.key};{self.fp}"


@fork_safe
def check(definition: ParsedSource) -> None:
    """Raise the syntax errors of a definition; one that any process has found valid is not parsed again."""
    store = disk_cache.default_cache()
    if store is None:
        definition.read()
        return
    key = digest("definition", definition.texts)
    if store.get("definition", key) is None:
        definition.read()
        store.put("definition", key, b"", definition.name)


@default_rounding()
def lower(
    definition: Source,
    types: Mapping[str, DType],
    ndims: Mapping[str, int],
    scalars: frozenset[str],
    facts: Facts | None = None,
) -> Program:
    """The typed program after all passes: only primitive ops, calls, and ops that are native to the target are left.

    ndims: raw array -> axes; "" -> axes of the iteration space. facts: all but these.
    """
    from fusec import passes

    raw = {name: ndim for name, ndim in ndims.items() if name}
    return passes.run(lower_program(definition, types, raw, scalars), replace(facts or passes.ANY, ndims=ndims))


@default_rounding()
def program_of(
    definition: Source, spec: Specialisation, native: Native = frozenset(), target: Target | None = None
) -> Program:
    """The program of one specialisation; native: ops that the target has instructions for.

    Raises AxisOutOfRange if it names an axis that the layout does not have.
    """
    from fusec.ir import axes
    from fusec.passes import Facts

    ndims = {"": spec.layout.ndim, **{name: ndim for name, (ndim, _) in spec.layout.raw}}
    program = lower(definition, dict(spec.types), ndims, spec.scalars, Facts(spec.fp, native, target))
    for param, needed in axes.required(program).items():
        if needed > ndims[param]:
            what = f"'{param}'" if param else "the iteration space ('_ind')"
            cure = "pass an array with more axes" if param else "axes are merged unless reduce_dims=False"
            count = counted(needed, "axis", "axes") if needed <= MAX_AXES else "impossible axes"
            raise AxisOutOfRange(definition.name, what, count, ndims[param], cure).at()
    return program


@fork_safe
def generate(definition: Source, spec: Specialisation, target: str) -> Kernel:
    """The kernel of a target."""
    row = target_of(target)
    generator = row.generator
    native = generator.approximate if spec.fp == "fast" else frozenset()
    program = program_of(definition, spec, native, "device" if row.threads else "cpu")
    if debug.is_wanted(4):
        debug.show(4, f"{definition.name} loops for {target}", _loops(program, spec.layout))
    kernel = generator.program(program, spec.layout, options_of(spec.fp, definition))
    debug.show(5, f"{kernel.title} {kernel.target}", kernel.source)
    fills = tuple(param.name for param in program.arrays if param.written and param.read and not param.raw)
    return replace(kernel, fills=fills)


def options_of(fp: Fp, definition: Source) -> Options:
    """The options of code generators."""
    from fusec.codegen.generator import Options
    from fusec.runtime.cpu.processor import processor

    return Options(processor, fp, tuple(definition.texts.get("options", ())))


def _loops(program: Program, layout: Layout) -> str:
    """How the iteration space is walked, and what happens for each element."""
    from fusec.ir.text import print_program

    moves = {Step.ZERO: "stays", Step.UNIT: "next element", Step.ANY: "stride", Step.DENSE: "next row"}
    axes = "1 axis" if layout.ndim == 1 else f"{layout.ndim} axes, the last innermost"
    walks = [f"#   {name}: {', '.join(moves[step] for step in row)}" for name, row in layout.steps]
    return "\n".join([f"# for every position along {axes} ({layout.key})", *walks, print_program(program)])


def check_fp(fp: object) -> Fp:
    """The floating-point mode. Raises UnknownFp for anything else."""
    for mode in MODES:
        if isinstance(fp, str) and fp == mode:
            return mode
    guess = did_you_mean(fp, MODES) if isinstance(fp, str) else ""
    modes = "modes are " + ", ".join(map(repr, MODES[:-1])) + f" and {MODES[-1]!r}"
    raise UnknownFp(repr(fp), f"{guess} {modes}".strip()).at()


def by_value(inputs: Sequence[str], scalars: Sequence[str], attempt: Callable[[tuple[str, ...]], Shown]) -> Shown:
    """The result of `attempt` for inputs passed by value: the scalars, and others that texts only use as numbers.

    Where a text uses an input without an index, or where arrays have no elements, a call passes a number.
    """
    taken, first = tuple(scalars), None
    while True:
        try:
            return attempt(taken)
        except FusecError as error:
            first = first or error
            name = error.span.text if error.span is not None else ""
            if error.code not in NO_NUMBER or name not in inputs or name in taken:
                raise first from None
            taken = (*taken, name)


Known = Recent[tuple[object, ...], Any]
"""Executables of one kernel, by what tells them apart."""


def compiled(
    sort: str, texts: Mapping[str, object], key: tuple[object, ...], generate: Callable[[], Kernel], known: Known
) -> Executable:
    """The machine code of a kernel for the CPU.

    sort, texts, key: all that the kernel depends on, apart from this version of fusec and the processor. known: what
    was found for it, as long as no variable of the process changes.
    """
    place = (*key, settings.version())
    found = None if debug.is_wanted(1) or is_watched() else known.get(place)
    if found is None:
        found = known.keep(place, _compiled(sort, texts, key, generate))
    return found  # type: ignore[no-any-return]


@fork_safe
def _compiled(
    sort: str, texts: Mapping[str, object], key: tuple[object, ...], generate: Callable[[], Kernel]
) -> Executable:
    from fusec.runtime.cpu import engine

    def load(kernel: Kernel, code: bytes) -> Executable:
        if debug.is_wanted(6):
            debug.show(6, f"{kernel.title} assembly", engine.assembly(kernel))
        return engine.load(kernel, code, store=disk_cache.default_cache())

    name = digest(sort, texts, *key, engine.fingerprint())
    return machine_code(name, "CPU", generate, engine.compile_object, load)


def is_compiled(sort: str, definition: Source, key: tuple[object, ...], known: Known) -> bool:
    """Whether `compiled` finds the machine code of a kernel; no if LLVM, which runs it, is not loaded yet."""
    if (*key, settings.version()) in known:
        return True
    if "llvmlite.binding" not in sys.modules:
        return False
    from fusec.runtime.cpu import jit

    name, store = digest(sort, definition.texts, *key, jit.target_id()), disk_cache.default_cache()
    return (store, name) in _loaded or (store is not None and store.has("kernel", name))


@lru_cache(maxsize=1)
def load_in_steps() -> None:
    """In the background: import what compiles, which takes long, under a lock that forks wait for and calls do not."""
    for name in STAGES:
        background.let_pass()
        with background.in_parallel(), llvm, suppress(ImportError, OSError):  # which is reported where it is needed
            import_module(name)


@fork_safe
def machine_code(
    key: str,
    machine: str,
    generate: Callable[[], Kernel],
    build: Callable[[Kernel], bytes],
    load: Callable[[Kernel, bytes], Code],
) -> Code:
    """The loaded machine code of a kernel, from memory or the disk cache, unless a stage is to be shown; else new.

    key: names all that it depends on. machine: what the label of a new entry in the disk cache says that it runs on.
    One thread compiles, the others wait.
    """
    started = time.perf_counter()
    store, is_shown = disk_cache.default_cache(), debug.is_wanted(3)
    found = None if is_shown else _loaded.get((store, key))
    if found is not None:
        made, kernel, nbytes = found
        report(kernel, nbytes, "from memory", started)
        return made  # type: ignore[no-any-return]
    packed = None if store is None or is_shown else store.get("kernel", key)
    unpacked = None if packed is None else disk_cache.unpack_kernel(packed)
    if unpacked is not None:
        kernel, code = unpacked
    else:
        kernel = generate()
        with background.in_parallel():
            code = build(kernel)
        if store is not None:
            store.put("kernel", key, disk_cache.pack_kernel(kernel, code), f"{kernel.label} {machine}")
    report(kernel, len(code), "compiled" if unpacked is None else "from the disk cache", started)
    made, *_ = _loaded.keep((store, key), (load(kernel, code), kernel, len(code)))
    return made  # type: ignore[no-any-return]


def forget_executables() -> None:
    """Look in the disk cache, or compile, when machine code is next needed."""
    _loaded.clear()
    settings.forget()


@dataclass(frozen=True)
class Found:
    """Machine code that a call has asked for."""

    title: str  # of the kernel
    how: str  # it came: "from memory", "from the disk cache" or "compiled"
    milliseconds: float


_watched: ContextVar[list[Found] | None] = ContextVar("_watched", default=None)


def is_watched() -> bool:
    """Whether a report collects the machine code that is asked for."""
    return _watched.get() is not None


@contextmanager
def watched() -> Iterator[list[Found]]:
    """The machine code that is asked for meanwhile, in order."""
    found: list[Found] = []
    token = _watched.set(found)
    try:
        yield found
    finally:
        _watched.reset(token)


def report(kernel: Kernel, nbytes: int, how: str, started: float) -> None:
    """A line about a kernel that is ready, and one about the decisions for it."""
    took = (time.perf_counter() - started) * 1e3
    found = _watched.get()
    if found is not None:
        found.append(Found(kernel.title, how, took))
    if not debug.is_wanted(1):
        return
    mode = "" if kernel.fp == "strict" else f" fp={kernel.fp}"
    title = f"{kernel.title} {kernel.digest[:12]} {kernel.layout.key}{mode}"
    debug.show(1, f"{title} {how} in {took:.1f} ms, {nbytes} bytes")
    debug.show(2, f"{kernel.label}: {'; '.join(kernel.notes)}; about {kernel.cost} operations an element")


def digest(*parts: object) -> str:
    """The cache key of JSON-able parts under this version of fusec and Python."""
    import json  # with the first kernel: 1 ms that `import fusec` need not spend

    text = json.dumps([FORMAT, VERSION, _build(), sys.version_info[:2], *parts], sort_keys=True)
    return disk_cache.digest(text)


@lru_cache(maxsize=1)
def _build() -> str:
    """Names every source of the package by size and time, so that a changed compiler does not run its old kernels."""
    rows = []
    for package in ("fusec", "fusec.grammar", "fusec.runtime"):  # the last two lie beside the first in a checkout
        spec = find_spec(package)
        assert spec is not None, f"{package} is a part of this package"
        for folder in spec.submodule_search_locations or ():
            for place, _, names in os.walk(folder):
                for name in names:
                    if name.endswith(SOURCES):
                        status = os.stat(os.path.join(place, name))
                        rows.append((package, place[len(folder) :], name, status.st_size, status.st_mtime_ns))
    return disk_cache.digest(repr(sorted(rows)))


@fork_safe
def canonical_layout(
    definition: Source, types: Mapping[str, DType], arrays: Iterable[str], raw: Iterable[str]
) -> Layout:
    """The layout that is shown if no call has fixed one: contiguous, with one axis or as many as the body names."""
    arrays, raw = tuple(arrays), tuple(raw)
    ndims = _least_axes(definition, types, frozenset(types) - {*arrays, *raw}, ("", *raw))
    steps = tuple((name, (*(Step.ANY,) * (ndims[""] - 1), Step.UNIT)) for name in arrays)
    return Layout(ndims[""], steps, tuple((name, (ndims[name], True)) for name in raw), aligned=16)


def _least_axes(
    definition: Source, types: Mapping[str, DType], scalars: frozenset[str], names: Iterable[str]
) -> dict[str, int]:
    """The smallest numbers of axes with which every axis the body names is there; 1 where none will do."""
    from fusec.ir import axes

    ndims = dict.fromkeys(names, 1)
    for _ in range(MAX_AXES_SHOWN):
        needed = axes.required(lower(definition, types, _known(ndims), scalars))
        missing = [name for name, count in needed.items() if count > ndims[name]]
        if not missing:
            break
        for name in missing:
            ndims[name] = needed[name] if needed[name] <= MAX_AXES else ndims[name] + 1
    return ndims


def _known(ndims: Mapping[str, int]) -> dict[str, int]:
    """Numbers of axes that are more than a first guess; the front end finds the others from how arrays are indexed."""
    return {name: ndim for name, ndim in ndims.items() if not name or ndim > 1}
