"""LLVM's work: IR text to an object, an object to an address, behind one lock.

LLVM aborts the process on internal errors, so every module is verified and emitted once, and where it gets no memory,
so there must be room for its work. Other users of llvmlite share the library: a process-wide option of LLVM is changed
only while code is generated, see Note [Constants of inner loops].
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any, Literal

from fusec.base import locks
from fusec.base.kernel_abi import CodeStore
from fusec.base.records import dataclass
from fusec.environment import debug
from fusec.runtime.cpu.memory import look_for_room
from fusec.runtime.cpu.processor import Processor, processor

ROOM = 8 << 20  # bytes for LLVM's work on a small module, and for a large one so many more for each character
ROOM_OF_CHARACTER = 64
PIPELINE = 5  # raise it when passes or options change: it is part of the keys of cached code
KIND = "object"

# Measured on saxpy, gelu and Black-Scholes with explicit vectors: "short" gives the code of "full" (-O3), in 5, 13 and
# 20 ms instead of 8, 18 and 27; most of it is code generation, which only "least" cuts down, to 3 ms. LLVM 22's
# new_gvn must stay out: an assertion in it can end the process.
Effort = Literal["least", "short", "full"]
PASSES: dict[str, tuple[str, ...]] = {
    "least": ("always_inliner", "sroa", "instruction_combine", "simplify_cfg"),
    "short": ("always_inliner", "sroa", "instruction_combine", "simplify_cfg"),
}


# What LLVM calls where a processor has no instruction: conversions and wide integers (libgcc's names), C's mathematics.
_RUNTIME_FUNCTION = re.compile(
    rb"\0_?("
    rb"__extend[bhsd]f[sdxt]f2|__trunc[sdxt]f[bhsd]f2|__gnu_h2f_ieee|__gnu_f2h_ieee"
    rb"|__fix(?:uns)?[hsd]f[sdt]i|__float(?:un)?[sdt]i[bhsd]f"
    rb"|__u?(?:div|mod)[dt]i3|__u?divmod[dt]i4|__mul[dt]i3|__multi3|__mulo[sdt]i4|__powi[sd]f2"
    rb"|(?:fma|fmod|floor|ceil|trunc|rint|nearbyint|round|roundeven|sqrt|ldexp|frexp|exp|exp2|log|log2|log10|pow|sin|cos)f?"
    rb"|memcpy|memmove|memset"
    rb")(?=\0)"
)


# Note [Masked ternary logic]: LLVM up to 22 exchanges two operands of AVX-512's VPTERNLOG where it merges under a mask
# into the second or third of them (its issue 157929): where(c, a & m | b & ~m, b) in a loop has wrong bits. An object
# with such an instruction, right or wrong, is not used: the module is compiled again without AVX-512.


# Note [Constants of inner loops]: LLVM up to 22 loads constants within an inner vector loop, since not every row enters
# it. That is an address and a load for each constant and vector, and a sixth of the time of tanh. An option lets LLVM
# load them before the loop. LLVM reads the option whenever it generates code, and ignores it where it is unknown; the
# option changes no results.


def _classes(*choices: list[int]) -> bytes:
    return b"".join(b"[" + re.escape(bytes(choice)) + b"]" for choice in choices)


# EVEX: the byte 62, then map 0F3A, prefix 66, a mask that is not k0 and merges; the opcode 25. Data may look alike,
# which costs no more than speed.
_MERGING_LOGIC = re.compile(
    _classes(
        [0x62],
        [byte for byte in range(256) if byte & 0x0F == 3],
        [byte for byte in range(256) if byte & 7 == 5],
        [byte for byte in range(128) if byte & 7],
        [0x25],
    ),
    re.DOTALL,
)


@dataclass(frozen=True)
class LoadedCode:
    """Code in memory for the life of the process: the entry's address, and the object it came from."""

    address: int
    object_bytes: bytes


# Note [One lock]: llvmlite lets one thread at a time into LLVM, by a lock of its own, and a fork would copy that lock
# in whatever state another thread holds it. So all our use of llvmlite happens under a lock that forks wait for. That
# includes the end of its objects: functions that make some keep them to themselves and are called under the lock.
# Whoever takes the lock of all stages too takes that one first.
_loaded: dict[str, LoadedCode] = {}  # by symbol, which names source and target


def target_id() -> str:
    """Names everything that an object depends on besides its source; part of every key of cached code."""
    host = processor()
    import llvmlite  # after a look at the processor, which explains what to do if the package is missing

    return "|".join((llvmlite.__version__, str(PIPELINE), host.triple, host.name, host.features))


def compile_text(name: str, source: str, store: CodeStore | None = None, effort: Effort = "full") -> LoadedCode:
    """The function `name` of a module given as IR text; compiled at most once in a process, and stored."""
    with locks.lock, locks.llvm:
        symbol = symbol_of(name, source, effort)
        if symbol in _loaded:
            return _loaded[symbol]
        kept = store.get(KIND, symbol) if store is not None else None
        found = load_object(name, source, kept, effort) if kept is not None else None
        if found is not None:
            return found
        data = emit(name, source, effort)
        if store is not None:
            store.put(KIND, symbol, data, name)
        found = load_object(name, source, data, effort)
        assert found is not None, f"the object of {name} does not define {symbol}"
        return found


def load_object(name: str, source: str, data: bytes, effort: Effort = "full") -> LoadedCode | None:
    """The function `name` of an object emitted from `source` for this target; None if the object does not match.

    LLVM would end the process if asked for a symbol that is not there, so the object is searched for it first.
    """
    with locks.lock, locks.llvm:
        symbol = symbol_of(name, source, effort)
        if symbol not in _loaded:
            if symbol.encode() not in data:
                return None
            _loaded[symbol] = LoadedCode(_machine(processor()).load(symbol, data), data)
        return _loaded[symbol]


def emit(name: str, source: str, effort: Effort = "full") -> bytes:
    """The object of a module; only the function `name` is visible in it, as `symbol_of` calls it."""
    with locks.lock:
        symbol = symbol_of(name, source, effort)
        with locks.llvm:
            machine = _machine(processor())
    with locks.llvm:
        return machine.emit(name, source, symbol, effort)


def symbol_of(name: str, source: str, effort: Effort) -> str:
    """The symbol under which an object exports its entry: unique for all that the object depends on."""
    return _symbol(name, target_id(), effort, source)


@lru_cache(maxsize=16)  # the texts of entries and sequences come for every new shape
def _symbol(name: str, target: str, effort: Effort, source: str) -> str:
    digest = hashlib.sha256(f"{name}|{target}|{effort}|{source}".encode()).hexdigest()
    return f"{name}.{digest[:32]}"


def assembly(name: str, source: str, effort: Effort = "full") -> str:
    """The assembly text of a module, for people to read."""
    with locks.lock, locks.llvm:
        return _machine(processor()).assembly(name, source, effort)


@cache
def _machine(host: Processor) -> TargetMachine:
    return TargetMachine(host)


class TargetMachine:
    """LLVM's objects for one processor: a target machine, and the one engine that holds all loaded code.

    Both live as long as the process: worker threads may be inside the code at any time, the end included.
    """

    def __init__(self, host: Processor) -> None:
        import llvmlite.binding as llvm

        self._llvm: Any = llvm
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_triple(host.triple)
        chosen = {"cpu": host.name, "features": host.features, "codemodel": "jitdefault", "jit": True}
        self.target: Any = target.create_target_machine(opt=3, **chosen)
        self.quick_target: Any = target.create_target_machine(opt=0, **chosen)
        self.has_avx512 = "+avx512f" in host.features.split(",")
        if self.has_avx512:
            narrow = {**chosen, "features": f"{host.features},-avx512f"}  # which takes all its extensions away too
            self.narrow_target: Any = target.create_target_machine(opt=3, **narrow)
        self._layout = str(self.target.target_data)
        self._triple = self.target.triple
        try:
            llvm.check_jit_execution()
        except OSError as error:
            from fusec.errors.targets import JitForbidden  # the catalogue takes longer to import than a kernel to load

            raise JitForbidden(str(error)).at() from error
        self._engine: Any = llvm.create_mcjit_compiler(llvm.parse_assembly(""), self.target)
        for each in (self._engine, self.target, self.quick_target, getattr(self, "narrow_target", self.target)):
            each._owned = True  # by the process: llvmlite disposes of no such object, not even as Python ends

    def emit(self, name: str, source: str, symbol: str, effort: Effort) -> bytes:
        """The object of a module, its entry renamed to `symbol`."""
        target = self.quick_target if effort == "least" else self.target
        data = self._object(name, source, symbol, effort, target)
        if self.has_avx512 and _MERGING_LOGIC.search(data):  # see Note [Masked ternary logic]
            debug.show(2, f"{name}: without AVX-512, because LLVM miscompiles its ternary logic here")
            data = self._object(name, source, symbol, effort, self.narrow_target)
        return data

    def _object(self, name: str, source: str, symbol: str, effort: Effort, target: Any) -> bytes:
        look_for_room(ROOM + ROOM_OF_CHARACTER * len(source), f"to compile {name.removeprefix('fusec.')}")
        with self.parse(source, name, symbol) as module:
            self.optimise(module, effort)
            with self._hoisting():
                return bytes(target.emit_object(module))

    def assembly(self, name: str, source: str, effort: Effort) -> str:
        """The assembly of a module."""
        is_narrow = self.has_avx512 and _MERGING_LOGIC.search(self._object(name, source, name, effort, self.target))
        with self.parse(source, name, name) as module:
            self.optimise(module, effort)
            with self._hoisting():
                return str((self.narrow_target if is_narrow else self.target).emit_assembly(module))

    @contextmanager
    def _hoisting(self) -> Iterator[None]:
        """See Note [Constants of inner loops]."""
        self._llvm.set_option("", "-avoid-speculation=false")
        try:
            yield
        finally:
            self._llvm.set_option("", "-avoid-speculation=true")

    def parse(self, source: str, name: str, symbol: str) -> Any:
        """The module of a text, its entry renamed to `symbol`, all else hidden. An invalid text is a bug of fusec."""
        llvm = self._llvm
        try:
            module = llvm.parse_assembly(source, llvm.create_context())
            module.triple, module.data_layout = self._triple, self._layout
            _export_only(module, name, symbol)
            module.verify()
        except (RuntimeError, NameError) as error:
            debug.show(1, f"LLVM refuses the module of {name}", source)
            raise AssertionError(f"LLVM refuses the module of {name}: {error}") from error
        return module

    def optimise(self, module: Any, effort: Effort) -> None:
        """Run the passes of an effort in place."""
        llvm = self._llvm
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = options.loop_interleaving = options.loop_unrolling = True
        options.slp_vectorization = False
        builder = llvm.create_pass_builder(self.target, options)
        if effort == "full":
            manager = builder.getModulePassManager()
        else:
            manager = llvm.create_new_module_pass_manager()
            for name in PASSES[effort]:
                getattr(manager, f"add_{name}_pass")()
        manager.run(module, builder)

    def load(self, symbol: str, data: bytes) -> int:
        """Add an object to the engine; the address of one of its functions.

        LLVM would end the process for a function of a C runtime that the process has not.
        """
        look_for_room(ROOM + len(data), f"for the code of {symbol.rpartition('.')[0].removeprefix('fusec.')}")
        missing = [name for name in _called(data) if not self._llvm.address_of_symbol(name)]
        assert not missing, f"{symbol} calls {', '.join(missing)}, which this process has not"
        self._engine.add_object_file(self._llvm.ObjectFileRef.from_data(data))
        self._engine.finalize_object()
        address: int = self._engine.get_function_address(symbol)
        assert address, f"{symbol} was not found in its object"
        return address


def _called(data: bytes) -> list[str]:
    """The functions of C runtimes that an object names, each between two zero bytes of its table of names."""
    return sorted({found.decode() for found in _RUNTIME_FUNCTION.findall(data)})


def _export_only(module: Any, name: str, symbol: str) -> None:
    """Rename the entry, and make every other definition internal, so that objects never clash in the engine."""
    entry = module.get_function(name)
    for value in (*module.functions, *module.global_variables):
        if not value.is_declaration and value.name != name:
            value.linkage = "internal"
    entry.name = symbol
    entry.linkage = "external"
