"""Launches: PTX text, a grid, and NumPy arrays in; the arrays changed by the kernel."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import numpy as np

from ptx.blocks import Code, prepare
from ptx.faults import Unsupported
from ptx.machine import Activation, Machine, Shape
from ptx.memory import GlobalMemory
from ptx.parse import parse
from ptx.syntax import Function, Module, Variable

Order = Literal["ascending", "descending", "shuffled"]
THREADS_AT_ONCE = 4096
_APART = ("bar", "barrier", "atom", "red", "membar", "fence", "shfl", "vote", "match", "redux", "activemask")


def load(text: str, approximate: bool = False) -> Module:
    """Parse a module. Raises Unsupported; also for approximate or flushing instructions, unless they are allowed."""
    with _no_collector():
        module = parse(text)
    for function in module.functions.values():
        for instruction in function.body:
            loose = {"approx", "ftz", "full"} & set(instruction.opcode)
            if loose and not approximate:
                fault = Unsupported(f"strict code has no .{sorted(loose)[0]}")
                raise fault.at(f"in {function.name}, line {instruction.line}: {instruction.text}")
    return module


def launch(
    module: Module,
    entry: str,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    args: Sequence[object],
    shared: int = 0,
    order: Order = "ascending",
    together: int | None = None,
    step_limit: int | None = None,
) -> None:
    """Run an entry to its end; arrays among the arguments are changed in place.

    args: arrays (passed as pointers), bytes (as they are) or numbers (as the parameter's type). shared: bytes of
    dynamic shared memory. order: of blocks, and of threads at one instruction. together: how many blocks run in
    lockstep; by default one where threads communicate, else as many as make vectors long.
    Raises a PtxFault that names the instruction.
    """
    arrays = [each for each in args if _is_buffer(each)]
    memory = memory_of(module, entry, arrays)
    buffers = iter(memory.buffers)
    params = module.functions[entry].params
    if len(params) != len(args):
        raise Unsupported(f"{entry} takes {len(params)} arguments, not {len(args)}")
    packed = [
        next(buffers).address.to_bytes(8, "little") if _is_buffer(each) else _packed(each, param)
        for each, param in zip(args, params, strict=True)
    ]
    run(module, entry, grid, block, packed, memory, shared, order, together, step_limit)
    for array, buffer in zip(arrays, memory.buffers, strict=True):
        if array.flags.writeable:
            array[...] = buffer.array


@contextmanager
def _no_collector() -> Iterator[None]:
    """Cyclic garbage waits: among hundreds of thousands of objects that stay, looking for it takes half the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _is_buffer(argument: object) -> bool:
    """Arrays are passed by address; those without axes are numbers."""
    return isinstance(argument, np.ndarray) and argument.ndim > 0


def _packed(value: object, param: Variable) -> bytes:
    """A number as the bytes of its parameter."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return np.asarray(value).tobytes()
    dtype = {"f": "f", "s": "i"}.get(param.type[0], "i" if isinstance(value, int) and value < 0 else "u")
    return np.array(value, f"{dtype}{param.nbytes}").tobytes()


def memory_of(module: Module, entry: str, arrays: Sequence[np.ndarray], aligned: int = 16) -> GlobalMemory:
    """Global memory with the arrays, the module's variables, and room for the entry's parameters."""
    nbytes = sum(-(-each.nbytes // 16) * 16 for each in module.functions[entry].params)
    return GlobalMemory(arrays, {**module.state, _PARAMS: bytearray(nbytes)}, aligned)


_PARAMS = "parameters"


def run(
    module: Module,
    entry: str,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    args: Sequence[bytes],
    memory: GlobalMemory,
    shared: int = 0,
    order: Order = "ascending",
    together: int | None = None,
    step_limit: int | None = None,
) -> None:
    """As `launch`, on memory that exists; args: the bytes of every parameter. Module variables keep what is written."""
    code = prepare(module, module.functions[entry])
    grids, threads = _shape(grid), _shape(block)
    block_size = int(np.prod(threads))
    limit = code.function.threads or 1024
    if not 0 < block_size <= limit:
        raise Unsupported(f"{entry} runs blocks of at most {limit} threads, not {block_size}")
    variables = [each for each in _shared_variables(module, code.function) if each.space == "shared"]
    blocks = ordered(int(np.prod(grids)), order)
    if together is None:
        together = 1 if variables or _communicates(code) else max(1, THREADS_AT_ONCE // block_size)
    params = _place_params(code.function, args, memory)
    with np.errstate(all="ignore"), _no_collector():
        for first in range(0, len(blocks), together):
            chosen = blocks[first : first + together]
            machine = Machine(module, memory, grids, threads, chosen, ordered(block_size, order))
            machine.symbols |= params
            machine.lay_out_shared(variables, shared)
            if step_limit is not None:
                machine.step_limit = step_limit
            rows = {
                param.name: np.frombuffer(given, np.uint8)[None, :]
                for param, given in zip(code.function.params, args, strict=True)
            }
            Activation(machine, code, np.arange(machine.thread_count), rows).run()
            machine.end()
    for name, content in module.state.items():
        content[:] = memory.read_variable(name, len(content))


def _place_params(function: Function, args: Sequence[bytes], memory: GlobalMemory) -> dict[str, int]:
    """Write the arguments where their addresses point, for code that takes the address of a parameter."""
    at = memory.symbols[_PARAMS]
    found = {}
    for param, given in zip(function.params, args, strict=True):
        if len(given) != param.nbytes:
            raise Unsupported(f"{param.name} takes {param.nbytes} bytes, not {len(given)}")
        found[param.name] = at
        raw = np.frombuffer(given, np.uint8)
        memory.store(np.arange(at, at + len(raw)).astype(np.uint64), 1, [raw])
        at += -(-param.nbytes // 16) * 16
    return found


def _shape(given: int | tuple[int, ...]) -> Shape:
    extents = (given,) if isinstance(given, int) else tuple(given)
    x, y, z = (*extents, 1, 1, 1)[:3]
    return x, y, z


def ordered(count: int, order: Order) -> np.ndarray:
    """Numbers below the count in the order asked for; the shuffled one is always the same."""
    match order:
        case "ascending":
            return np.arange(count)
        case "descending":
            return np.arange(count)[::-1].copy()
        case "shuffled":
            return np.random.default_rng(count).permutation(count)
    raise AssertionError(f"no order is called {order}")


def _reachable(module: Module, function: Function) -> list[Function]:
    """The function and all that it calls."""
    found, waiting = {function.name: function}, [function]
    while waiting:
        for instruction in waiting.pop().body:
            for operand in instruction.operands if instruction.opcode[0] == "call" else ():
                name = getattr(operand, "name", "")
                if name in module.functions and name not in found:
                    found[name] = module.functions[name]
                    waiting.append(found[name])
    return list(found.values())


def _shared_variables(module: Module, function: Function) -> list[Variable]:
    """Shared variables of the functions that run, and those of the module that they name."""
    found = {}
    for each in _reachable(module, function):
        found |= {name: variable for name, variable in each.variables.items() if variable.space == "shared"}
        text = " ".join(instruction.text for instruction in each.body)
        found |= {name: variable for name, variable in module.variables.items()
                  if variable.space == "shared" and name in text}  # fmt: skip
    return list(found.values())


def _communicates(code: Code) -> bool:
    return any(instruction.opcode[0] in (*_APART, "call") for instruction in code.function.body)
