"""Runs prepared functions: threads go in groups that stand at one block, the group at the lowest block first.

Lowest first reconverges divergent threads; those who wait at a barrier or a shuffle go on when all others are there.
"""

import numpy as np

from ptx.blocks import CARRY, EXIT, Block, Code, Jumps, prepare
from ptx.decode import decode, place_of
from ptx.faults import BarrierDivergence, PtxFault, StepLimit, Uninitialised, Unsupported, WarpDivergence
from ptx.group import Group, Partial, RegisterFile
from ptx.memory import FIRST, GLOBAL, LOCAL, SHARED, WINDOW, GlobalMemory, LocalMemory
from ptx.shared import Places, SharedMemory
from ptx.syntax import Module, Variable
from ptx.warp_steps import ready

Array = np.ndarray
Shape = tuple[int, int, int]
STEP_LIMIT = 20_000_000
CALL_DEPTH = 64
STATIC_SHARED = 49152  # bytes that a block may declare (CUDA programming guide, technical specifications)


class Machine:
    """Some blocks of a launch, all of whose threads run together.

    blocks: their numbers in the grid, in the order in which they come at equal instructions; order: of the threads of a
    block, a permutation.
    """

    def __init__(
        self, module: Module, memory: GlobalMemory, grid: Shape, block: Shape, blocks: Array, order: Array
    ) -> None:
        self.module, self.memory, self.grid, self.block = module, memory, grid, block
        self.block_size = block[0] * block[1] * block[2]
        self.thread_count = len(blocks) * self.block_size
        self.thread_in_block = np.tile(order, len(blocks))  # tid, flat
        self.slots = np.repeat(np.arange(len(blocks)), self.block_size)  # which of the blocks
        self.block_in_grid = np.repeat(blocks, self.block_size)
        self.warps_per_block = -(-self.block_size // 32)
        self.warp_count = len(blocks) * self.warps_per_block
        self.lanes = self.thread_in_block % 32
        self._warps = (self.slots * self.warps_per_block + self.thread_in_block // 32).astype(np.int32)
        self._numbers = np.arange(self.thread_count, dtype=np.int32)
        self.local = LocalMemory(self.thread_count)
        self.symbols = dict(memory.symbols)
        self.shared: SharedMemory | None = None
        self.steps = 0
        self.step_limit = STEP_LIMIT

    def lay_out_shared(self, variables: list[Variable], dynamic: int) -> None:
        """Give shared variables addresses, static ones first; dynamic: bytes of the extern ones, which coincide."""
        end = FIRST
        for each in variables:
            if not each.is_extern:
                end = (-(-end // each.align) | 1) * each.align  # a multiple of the alignment and of no higher one
                self.symbols[each.name] = end
                end += each.nbytes
        if end - FIRST > STATIC_SHARED:
            raise Unsupported(f"{end - FIRST} bytes of static shared memory; a block may have {STATIC_SHARED}")
        externs = [each for each in variables if each.is_extern]
        if externs:
            end = -(-end // 16) * 16
            self.symbols |= {each.name: end for each in externs}
        self.dynamic = dynamic
        nbytes = end + dynamic - FIRST
        everyone = self.places_of(self._numbers)
        self.shared = SharedMemory(int(self.slots[-1]) + 1, nbytes, everyone) if nbytes else None

    def places_of(self, threads: Array) -> Places:
        """The numbers of threads, their warps and their blocks."""
        return Places(self._numbers[threads], self._warps[threads], self.slots[threads])

    def who(self, thread: int) -> str:
        """A thread for messages."""
        tid, ctaid = self._coordinates(thread)
        return f"thread {tid} of block {ctaid}"

    def _coordinates(self, thread: int) -> tuple[Shape, Shape]:
        tid, ctaid = int(self.thread_in_block[thread]), int(self.block_in_grid[thread])
        (x, y, _), (gx, gy, _) = self.block, self.grid
        return (tid % x, tid // x % y, tid // (x * y)), (ctaid % gx, ctaid // gx % gy, ctaid // (gx * gy))

    # --- special registers -----------------------------------------------------------------------------------------

    def special(self, name: str) -> Array:
        """A special register of every thread."""
        stem, _, axis = name[1:].partition(".")
        extents = self.block if stem in ("tid", "ntid") else self.grid
        at = "xyz".find(axis or "-")
        match stem:
            case "tid" | "ctaid":
                flat = self.thread_in_block if stem == "tid" else self.block_in_grid
                below = int(np.prod(extents[:at], dtype=np.int64))
                return (flat // below % extents[at]).astype(np.uint32)
            case "ntid" | "nctaid":
                return self._all(extents[at])
            case "laneid":
                return self.lanes.astype(np.uint32)
            case "warpid":
                return (self.thread_in_block // 32).astype(np.uint32)
            case "nwarpid":
                return self._all(self.warps_per_block)
            case "dynamic_smem_size":
                return self._all(self.dynamic)
            case "smid":
                return self._all(0)
            case "nsmid":
                return self._all(1)
            case "gridid":
                return np.zeros(self.thread_count, np.uint64)
        if stem.startswith("lanemask_"):
            return self._lane_mask(stem[9:])
        raise Unsupported(f"the special register {name}")

    def _all(self, value: int) -> Array:
        return np.full(self.thread_count, value, np.uint32)

    def _lane_mask(self, order: str) -> Array:
        own = np.uint64(1) << self.lanes.astype(np.uint64)
        below = own - np.uint64(1)
        masks = {"eq": own, "lt": below, "le": below | own, "gt": ~(below | own), "ge": ~below}
        return masks[order].astype(np.uint32)

    # --- memory ----------------------------------------------------------------------------------------------------

    def _windows(self, space: str, addresses: Array) -> list[tuple[str, Array | None]]:
        """The spaces that the addresses belong to, with the positions of each; None stands for all."""
        if space != "generic":
            return [(space if space in ("shared", "local") else "global", None)]
        if int(addresses.min()) >= GLOBAL:
            return [("global", None)]
        windows = addresses // np.uint64(WINDOW)
        names = {SHARED // WINDOW: "shared", LOCAL // WINDOW: "local"}
        found = [(names.get(int(each), "global"), np.flatnonzero(windows == each)) for each in np.unique(windows)]
        return [(name, None if len(at) == len(addresses) else at) for name, at in found]

    def load(
        self, g: Group, space: str, addresses: Array, width: int, count: int, chosen: Array | None = None
    ) -> list[Array]:
        """Raw values of `count` neighbours; chosen: which threads of the group, for an atomic update."""
        parts = []
        windows = self._windows(space, addresses)
        for name, at in windows:
            members = at if chosen is None else chosen if at is None else chosen[at]
            own = addresses if at is None else addresses[at]
            if name == "global":
                parts.append(self.memory.load(own, width, count))
                continue
            if space == "generic":
                own = own % np.uint64(WINDOW)
            who = g.places if members is None else _some(g.places, members)
            if name == "local":
                parts.append(self.local.load(own, who.threads, width, count))
            else:
                parts.append(self._shared().load(own, who, width, count, chosen is not None))
        if len(parts) == 1:
            return parts[0]
        merged = [np.zeros(len(addresses), part.dtype) for part in parts[0]]
        for (_, at), part in zip(windows, parts, strict=True):
            for whole, values in zip(merged, part, strict=True):
                whole[at] = values
        return merged

    def store(
        self, g: Group, space: str, addresses: Array, width: int, values: list[Array], chosen: Array | None = None
    ) -> None:
        """Store raw values; as `load`."""
        for name, at in self._windows(space, addresses):
            members = at if chosen is None else chosen if at is None else chosen[at]
            own = addresses if at is None else addresses[at]
            some = values if at is None else [each[at] if len(each) > 1 else each for each in values]
            if name == "global":
                self.memory.store(own, width, some)
                continue
            if space == "generic":
                own = own % np.uint64(WINDOW)
            who = g.places if members is None else _some(g.places, members)
            if name == "local":
                self.local.store(own, who.threads, width, some)
            else:
                self._shared().store(own, who, width, some, chosen is not None)

    def _shared(self) -> SharedMemory:
        if self.shared is None:
            raise PtxFault("the kernel has no shared memory")
        return self.shared

    # --- barriers --------------------------------------------------------------------------------------------------

    def pass_barrier(self, g: Group) -> None:
        """What the blocks of the group did so far is ordered before what follows."""
        if self.shared is not None:
            self.shared.finish(np.unique(g.places.blocks))

    def end(self) -> None:
        """All threads have ended."""
        if self.shared is not None:
            self.shared.finish(np.unique(self.slots))

    def pass_warp_barrier(self, g: Group) -> None:
        """The same, among the lanes of each warp of the group."""
        if self.shared is not None:
            self.shared.warp_epochs[np.unique(g.places.warps)] += 1


def _some(places: Places, at: Array) -> Places:
    return Places(places.threads[at], places.warps[at], places.blocks[at])


class Activation:
    """One function with its registers, run by some threads of the machine from entry to return."""

    def __init__(
        self, machine: Machine, code: Code, threads: Array, params: dict[str, Array], stack: int = 0, depth: int = 0
    ) -> None:
        """params: for each parameter a row of bytes for every thread, or one row for all; stack: local bytes in use."""
        self.machine, self.code, self.threads, self.depth = machine, code, threads, depth
        self.threads_count = len(threads)
        self.params = params
        self.symbols: dict[str, int] = {}
        for each in code.function.variables.values():
            if each.space == "local":
                stack = -(-stack // max(each.align, 16)) * max(each.align, 16)
                self.symbols[each.name] = FIRST + stack
                stack += each.nbytes
        self.stack = stack
        machine.local.reserve(stack)
        for each in (*code.function.returns, *code.function.variables.values()):
            if each.space == "param":
                self.params[each.name] = np.zeros((len(threads), each.nbytes), np.uint8)
        self._pending: dict[int, list[Array]] = {}
        self._parked: dict[int, Array] = {}

    def address_of(self, name: str) -> int:
        """The address of a variable, within its space."""
        found = self.symbols.get(name, self.machine.symbols.get(name))
        if found is None:
            raise Unsupported(f"nothing is known of {name}")
        return found

    # --- parameters and calls --------------------------------------------------------------------------------------

    def read_param(self, g: Group, name: str, offset: int, width: int) -> Array:
        """Bytes of a parameter as unsigned numbers."""
        rows = self.params[name]
        chosen = rows if g.index is None or len(rows) == 1 else rows[g.index]
        return np.ascontiguousarray(chosen[:, offset : offset + width]).view(f"u{width}")[:, 0]

    def write_param(self, g: Group, name: str, offset: int, values: Array) -> None:
        """Write bytes of a parameter of a call, or of a result."""
        raw = np.ascontiguousarray(values).view(np.uint8).reshape(g.n, -1)
        self.params[name][g.positions(), offset : offset + raw.shape[1]] = raw

    def call(self, g: Group, name: str, arguments: list[str], results: list[str]) -> None:
        """Run a function for the threads of the group."""
        function = self.machine.module.functions.get(name)
        if function is None or not function.body:
            raise PtxFault(f"{name} is called, which has no body" if function else f"unknown function {name}")
        if self.depth >= CALL_DEPTH:
            raise StepLimit(f"calls are nested more than {CALL_DEPTH} deep")
        at = g.positions()
        params = {param.name: self.params[given][at] for param, given in zip(function.params, arguments, strict=True)}
        callee = prepare(self.machine.module, function)
        inner = Activation(self.machine, callee, g.threads, params, self.stack, self.depth + 1)
        inner.run()
        for result, given in zip(function.returns, results, strict=True):
            self.params[given][at] = inner.params[result.name]

    # --- scheduling ------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Run every thread to its end."""
        self.file = RegisterFile(self.threads_count, self.code.dtypes)
        for name, number in self.code.numbers.items():
            if name.startswith("%") and name not in self.code.function.registers and name != CARRY:
                self.file.set(number, self.machine.special(name)[self.threads])
        self._push(0, np.arange(self.threads_count))
        while self._pending:
            at = min(self._pending)
            parts = self._pending.pop(at)
            index = parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))
            self._run_group(at, index)
        if self._parked:
            raise self._divergence()

    def _push(self, at: int, index: Array) -> None:
        if at != EXIT and len(index):
            self._pending.setdefault(at, []).append(index)

    def _group(self, index: Array) -> Group:
        return Group(self, None if len(index) == self.threads_count else index)

    def _run_group(self, at: int, index: Array) -> None:
        """From one block on, until the threads part or others are behind them."""
        group = self._group(index)
        while True:
            block = self.code.blocks[at]
            if block.steps is None:
                decode(block, self.code)
            if block.start in self.code.gates:
                group.give_back()
                index = self._arrive(at, group.positions())
                if not len(index):
                    return
                group = self._group(index)
            following = self._run_block(at, block, group)
            if not isinstance(following, int):
                group.give_back()
                positions = group.positions()
                for target, taken in following:
                    self._push(target, positions[taken])
                return
            if following == EXIT or (self._pending and min(self._pending) <= following):
                group.give_back()
                self._push(following, group.positions())
                return
            at = following

    def _run_block(self, at: int, block: Block, group: Group) -> int | Jumps:
        group.take(block.reads)
        registers, steps = group.registers, block.steps
        group.written |= block.writes
        self.machine.steps += len(steps) + 1
        if self.machine.steps > self.machine.step_limit:
            raise StepLimit(f"more than {self.machine.step_limit} steps").at(f"in {self.code.function.name}")
        place = 0
        try:
            for place, step in enumerate(steps):  # noqa: B007
                step(registers, group)
            if block.jump is None:
                return at + 1 if at + 1 < len(self.code.blocks) else EXIT
            place = len(steps)
            return block.jump(registers, group)
        except Exception as wrong:
            raise self._located(wrong, block, place, group) from wrong

    def _located(self, wrong: Exception, block: Block, place: int, group: Group) -> Exception:
        """The fault with its instruction and a thread; what NumPy says of registers without values becomes a fault."""
        instruction = self.code.function.body[block.start + place]
        is_undefined = any(isinstance(group.registers[number], Partial) for number in block.reads)
        if not isinstance(wrong, PtxFault):
            if not is_undefined:
                wrong.add_note(place_of(self.code, instruction))
                return wrong
            wrong = Uninitialised("a register is read before it is written")
        return wrong.at(f"{place_of(self.code, instruction)}; thread #0 of the group is {self._first(group)}")

    def _first(self, group: Group) -> str:
        return self.machine.who(int(group.threads[0]))

    # --- waiting ---------------------------------------------------------------------------------------------------

    def _arrive(self, at: int, index: Array) -> Array:
        """Threads come to a gate; those that may go on. The others are parked."""
        if at in self._parked:
            index = np.sort(np.concatenate([index, self._parked.pop(at)]))
        instruction = self.code.gates[self.code.blocks[at].start]
        group = self._group(index)
        try:
            may = ready(instruction, self.code, group)
        except PtxFault as fault:
            raise fault.at(f"{place_of(self.code, instruction)}; the group has {self._first(group)}") from None
        if not may.all():
            self._parked[at] = index[~may]
        return index[may]

    def _divergence(self) -> PtxFault:
        """Threads wait for others who have ended, or wait elsewhere."""
        waiting = {at: self.threads[index] for at, index in self._parked.items()}
        lines = []
        for at, threads in waiting.items():
            instruction = self.code.gates[self.code.blocks[at].start]
            who = f"{len(threads)} threads, {self.machine.who(int(threads[0]))} first"
            lines.append(f"{who}, wait {place_of(self.code, instruction)}")
        first = self.code.gates[self.code.blocks[min(waiting)].start]
        is_warp = first.opcode[0] not in ("bar", "barrier") or "warp" in first.opcode
        kind = WarpDivergence if is_warp else BarrierDivergence
        return kind(f"{'; '.join(lines)}; the others have ended or wait elsewhere")
