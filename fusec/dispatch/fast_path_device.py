"""The functions that repeated calls on a device run: each is generated for one kind of call and looks nothing up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from fusec.base.records import dataclass, field
from fusec.runtime import cuda

Encoder = Callable[[Any], int]
MAX_STREAMS = 64  # for which a kind of call knows how to allocate
Returns = Literal["outputs", "tuple", "nothing"]  # a tuple of them if they are several, always a tuple, or None


class ArrayPair(NamedTuple):
    """Two arrays of a call, one of them written; they lie apart if the second begins at least `above` or at most
    `below` bytes from where the first does.

    may_coincide: they may lie in the same place, since every element is read before it is written.
    """

    first: int
    second: int
    below: int
    above: int
    may_coincide: bool


@dataclass(frozen=True, slots=True)
class CachedLaunch:
    """One kernel of a known kind of call; arguments go by their positions, outputs after the inputs."""

    template: tuple[int, ...]  # its argument words, addresses and numbers still 0
    pointers: tuple[tuple[int, int, int], ...]  # slot, argument, offset in bytes
    between: tuple[tuple[int, int], ...]  # slot, offset in bytes in the memory between the kernels of a call
    scalars: tuple[tuple[int, int, Encoder], ...]  # slot, argument, encoder


@dataclass(frozen=True, slots=True)
class CachedSequence:
    """All kernels of a known kind of call.

    enqueue: launches them, given a stream, the addresses of arrays, that of the memory between kernels if there is
    some, and encoded numbers. arrays, scalars: the arguments that these are, numbers with their encoders.
    """

    enqueue: Callable[..., object]
    arrays: tuple[int, ...]
    scalars: tuple[tuple[int, Encoder], ...]


@dataclass(frozen=True, slots=True)
class CachedCall:
    """A kind of call whose arguments only need to be filled in."""

    makers: tuple[Callable[[], tuple[Any, int]], ...]  # of the outputs that the call allocates
    pairs: tuple[ArrayPair, ...]  # arrays that must not meet
    source: cuda.ArrayLibrary  # of all arrays
    device: int
    nin: int  # how many inputs there are, which the outputs follow
    returns: Returns
    note: Callable[[], object]  # records the call as the kernel's last one
    in_sequence: Callable[[], CachedSequence]  # makes the sequence when calls are repeated
    sequence: CachedSequence | None = None
    nbytes: int = 0  # of the memory between the launches
    allocators: dict[int, Callable[[], Any]] = field(default_factory=dict)  # of that memory, by stream

    def run(self, args: tuple[object, ...], values: list[Any]) -> object:
        """The result of a call. values: addresses of arrays, and numbers.

        Raises BufferError, before anything runs, if arrays meet or if new memory is oddly aligned.
        """
        assert self.sequence is not None, "a call that was repeated"
        for first, second, below, above, may_coincide in self.pairs:
            distance = values[second] - values[first]
            if below < distance < above and not (may_coincide and distance == 0):
                raise BufferError("an output lies where another array does")
        stream, made = self.source.stream(self.device), args[self.nin :]
        if self.makers:
            found = [make() for make in self.makers]
            made = tuple([array for array, _ in found])
            values += [address for _, address in found]
            if any(address % cuda.VECTOR_BYTES for _, address in found):
                raise BufferError("new memory is oddly aligned")
        held = self.between(stream) if self.nbytes else None
        start = () if held is None else (held.pointer,)
        numbers = [encoder(values[at]) for at, encoder in self.sequence.scalars]
        self.sequence.enqueue(stream, *[values[at] for at in self.sequence.arrays], *start, *numbers)
        self.note()
        if self.makers and self.source.deliver is not None:
            made = tuple(map(self.source.deliver, made))
        if self.returns == "nothing":
            return None
        return made[0] if len(made) == 1 and self.returns != "tuple" else made

    def between(self, stream: int) -> Any:
        """The memory between the kernels of one call."""
        allocate = self.allocators.get(stream)
        if allocate is None:
            if len(self.allocators) >= MAX_STREAMS:
                self.allocators.clear()
            allocate = self.allocators[stream] = cuda.allocator(self.nbytes, self.device, stream)
        return allocate()


# --- generated functions -------------------------------------------------------------------------------------------


@dataclass(eq=False)
class EntryParts:
    """What a generated function does once arguments a0, a1, … with addresses p0, p1, … are known to be as they should.

    names: what the texts below name. conditions: more that must hold. objections: conditions on addresses under which
    the call goes elsewhere. makers: of arrays made{n} at address new{n}. between: gives the memory between kernels on a
    stream. launch: launches all, given a stream and `words`. finish: what follows. answer: the result.
    """

    names: dict[str, Any]
    conditions: list[str]
    objections: list[str]
    makers: Sequence[Callable[[], tuple[Any, int]]]
    between: Callable[[int], Any] | None
    launch: Callable[..., object]
    words: list[str]
    finish: list[str]
    answer: str
    outputs: int | None = None  # arguments from here on may also be out=


def entry_of(ready: CachedCall, args: tuple[Any, ...], other: Callable[..., object]) -> Callable[..., object]:
    """A function for calls with arguments like `args`; it hands all others, and failures, to `other`."""
    sequence, count = ready.sequence, len(args)
    assert sequence is not None, "a call that was repeated"
    objections = []
    for first, second, below, above, may_coincide in ready.pairs:
        meet = f"{below} < p{second} - p{first} < {above}"
        objections.append(f"({meet} and p{second} != p{first})" if may_coincide else f"({meet})")
    names: dict[str, Any] = {"note": ready.note}
    words = [f"p{at}" if at < count else f"new{at - count}" for at in sequence.arrays]
    words += ["held.pointer"] * bool(ready.nbytes)
    for number, (argument, encoder) in enumerate(sequence.scalars):
        names[f"encode{number}"] = encoder
        words.append(f"encode{number}(a{argument})")
    results = [f"made{at}" for at in range(len(ready.makers))] or [f"a{at}" for at in range(ready.nin, count)]
    answer = f"({', '.join(results)},)" if ready.returns == "tuple" or len(results) != 1 else results[0]
    parts = EntryParts(
        names=names,
        conditions=[],
        objections=objections,
        makers=ready.makers,
        between=ready.between if ready.nbytes else None,
        launch=sequence.enqueue,
        words=words,
        finish=["note()"],
        answer="None" if ready.returns == "nothing" else answer,
        outputs=ready.nin,
    )
    return generated(ready.source, ready.device, args, parts, other)


def generated(
    source: cuda.ArrayLibrary, device: int, args: Sequence[Any], parts: EntryParts, other: Callable[..., object]
) -> Callable[..., object]:
    """A function for calls with arguments like `args`; it hands all others, and failures before the launch, to `other`.

    How much is asked of an array is up to its source: see ArrayLibrary.facts.
    """
    names = {"other": other, "device": device, "stream": source.stream, "launch": parts.launch, **parts.names}
    conditions, addresses, objections = [], [], list[str]()
    for at, arg in enumerate(args):
        names[f"Kind{at}"] = type(arg)
        conditions.append(f"type(a{at}) is Kind{at}")
        if type(arg) is source.kind:
            for number, (expression, sign) in enumerate(source.facts):
                names[f"fact{at}_{number}"] = eval(expression.format("a"), {"a": arg})
                conditions.append(f"{expression.format(f'a{at}')} {sign} fact{at}_{number}")
            addresses.append(f"p{at} = {source.address.format(f'a{at}')}")
            rest = eval(source.address.format("a"), {"a": arg}) % cuda.VECTOR_BYTES
            objections.append(f"p{at} % {cuda.VECTOR_BYTES} != {rest}")
    conditions += parts.conditions
    elsewhere = "return other(*given, **kwargs)"
    lines = [*addresses, f"if {' or '.join([*objections, *parts.objections])}: {elsewhere}", "on = stream(device)"]
    if parts.between is not None:
        names["between"] = parts.between
        lines.append("held = between(on)")
    for at, maker in enumerate(parts.makers):
        names[f"make{at}"] = maker
        lines += [f"made{at}, new{at} = make{at}()", f"if new{at} % {cuda.VECTOR_BYTES}: {elsewhere}"]
    lines.append(f"words = ({''.join(f'{word}, ' for word in parts.words)})")
    text = [
        "def entry(*args, **kwargs):",
        "    given = args",
        *(_with_outputs(parts.outputs) if parts.outputs is not None else [f"    if kwargs: {elsewhere}"]),
        f"    if len(args) != {len(args)}: {elsewhere}",
        f"    {''.join(f'a{at}, ' for at in range(len(args)))} = args",
        "    try:",
        f"        if not ({' and '.join(conditions)}): {elsewhere}",
        *(f"        {line}" for line in lines),
        f"    except Exception: {elsewhere}",  # whatever it is, the long way tells
        "    launch(on, *words)",
        *(f"    {line}" for line in parts.finish),
        f"    return {parts.answer}",
    ]
    exec("\n".join(text), names)
    entry: Callable[..., object] = names["entry"]
    return entry


def _with_outputs(start: int) -> list[str]:
    return [
        "    if kwargs:",
        f"        if len(kwargs) != 1 or 'out' not in kwargs or len(args) != {start}: return other(*given, **kwargs)",
        "        args = (*args, kwargs['out'])",
    ]
