"""The functions that repeated calls on a device run: each is generated for one kind of call and looks nothing up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from fusec.base.records import dataclass, field
from fusec.runtime import cuda

Encoder = Callable[[Any], int]
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

    launcher: cuda.Launcher  # enqueues argument words on a stream
    template: tuple[int, ...]  # those words, addresses and numbers still 0
    pointers: tuple[tuple[int, int, int], ...]  # slot, argument, offset in bytes
    between: tuple[tuple[int, int], ...]  # slot, offset in bytes in the memory between the kernels of a call
    scalars: tuple[tuple[int, int, Encoder], ...]  # slot, argument, encoder


@dataclass(frozen=True, slots=True)
class CachedSequence:
    """All kernels of a known kind of call, whose words lie one behind the other."""

    launches: cuda.LaunchSequence
    pointers: tuple[tuple[int, int, int], ...]  # word, argument, offset in bytes
    between: tuple[tuple[int, int], ...]  # word, offset in bytes in the memory between the kernels of a call
    scalars: tuple[tuple[int, int, Encoder], ...]  # word, argument, encoder

    def enqueue(self, values: Sequence[Any], start: int, stream: int) -> None:
        """Launch all. values: of arguments. start: of the memory between the kernels."""
        held = self.launches.take()
        _fill(held.words, self, values, start)
        self.launches.enqueue(held, stream)


@dataclass(frozen=True, slots=True)
class CachedCall:
    """A kind of call whose arguments only need to be filled in."""

    launches: tuple[CachedLaunch, ...]
    makers: tuple[Callable[[], tuple[Any, int]], ...]  # of the outputs that the call allocates
    pairs: tuple[ArrayPair, ...]  # arrays that must not meet
    source: cuda.ArrayLibrary  # of all arrays
    device: int
    nin: int  # how many inputs there are, which the outputs follow
    returns: Returns
    note: Callable[[], object]  # records the call as the kernel's last one
    in_sequence: Callable[[], CachedSequence]  # makes the sequence of several launches, when calls are repeated
    sequence: CachedSequence | None = None
    nbytes: int = 0  # of the memory between the launches
    allocators: dict[int, Callable[[], Any]] = field(default_factory=dict)  # of that memory, by stream

    def run(self, args: tuple[object, ...], values: list[Any]) -> object:
        """The result of a call. values: addresses of arrays, and numbers.

        Raises BufferError, before anything runs, if arrays meet or if new memory is oddly aligned.
        """
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
        held = self._between(stream) if self.nbytes else None
        start = 0 if held is None else int(held.handle)
        if self.sequence is not None:
            self.sequence.enqueue(values, start, stream)
        for launch in self.launches if self.sequence is None else ():
            words = list(launch.template)
            _fill(words, launch, values, start)
            launch.launcher(words, stream)
        self.note()
        if self.makers and self.source.deliver is not None:
            made = tuple(map(self.source.deliver, made))
        if self.returns == "nothing":
            return None
        return made[0] if len(made) == 1 and self.returns != "tuple" else made

    def _between(self, stream: int) -> Any:
        allocate = self.allocators.get(stream)
        if allocate is None:
            allocate = self.allocators[stream] = cuda.allocator(self.nbytes, self.device, stream)
        return allocate()


def _fill(words: Any, launch: CachedLaunch | CachedSequence, values: Sequence[Any], start: int) -> None:
    """Fill in addresses and numbers of arguments. start: of the memory between launches."""
    for word, argument, offset in launch.pointers:
        words[word] = values[argument] + offset
    for word, offset in launch.between:
        words[word] = start + offset
    for word, argument, encoder in launch.scalars:
        words[word] = encoder(values[argument])


def entry_of(ready: CachedCall, args: tuple[Any, ...], other: Callable[..., object]) -> Callable[..., object]:
    """A function for calls of one launch with arguments like `args`; it hands all others, and failures, to `other`.

    How much is asked of an array is up to its source: see Source.facts.
    """
    source, (launch,), nin = ready.source, ready.launches, ready.nin
    names: dict[str, object] = {"other": other, "note": ready.note, "device": ready.device, "stream": source.stream}
    names |= {"targets": launch.launcher.targets, "launch": launch.launcher.launch, "again": launch.launcher}
    names |= {"config": launch.launcher.config, "kernel": launch.launcher.kernel}
    conditions, addresses = [], []
    for at, arg in enumerate(args):
        names[f"Kind{at}"] = type(arg)
        conditions.append(f"type(a{at}) is Kind{at}")
        if type(arg) is source.kind:
            for number, (expression, sign) in enumerate(source.facts):
                names[f"fact{at}_{number}"] = eval(expression.format("a"), {"a": arg})
                conditions.append(f"{expression.format(f'a{at}')} {sign} fact{at}_{number}")
            addresses.append(f"p{at} = {source.address.format(f'a{at}')}")
            names[f"rest{at}"] = eval(source.address.format("a"), {"a": arg}) % cuda.VECTOR_BYTES
    lines = [*addresses, *_checks(ready, args), *_outputs(ready, args, names), *_launch(launch, names)]
    given = [f"a{at}" for at in range(len(args))]
    results = [f"a{len(args) + at}" for at in range(len(ready.makers))] or given[nin:]
    answer = f"({', '.join(results)},)" if ready.returns == "tuple" or len(results) != 1 else results[0]
    lines += ["note()", f"return {'None' if ready.returns == 'nothing' else answer}"]
    text = [
        "def entry(*args, **kwargs):",
        "    given = args",
        "    if kwargs:",
        f"        if len(kwargs) != 1 or 'out' not in kwargs or len(args) != {nin}: return other(*args, **kwargs)",
        "        args = (*args, kwargs['out'])",
        f"    if len(args) == {len(args)}:",
        f"        {', '.join(given)}, = args",
        "        try:",
        f"            if {' and '.join(conditions)}:",
        *(f"                {line}" for line in lines),
        "        except Exception: pass",  # whatever it is, the long way tells
        "    return other(*given, **kwargs)",
    ]
    exec("\n".join(text), names)
    entry: Callable[..., object] = names["entry"]  # type: ignore[assignment]
    return entry


def _checks(ready: CachedCall, args: tuple[Any, ...]) -> list[str]:
    """Alignment as in the first call, and arrays that lie apart."""
    kind = ready.source.kind
    conditions = [f"p{at} % {cuda.VECTOR_BYTES} != rest{at}" for at, arg in enumerate(args) if type(arg) is kind]
    for first, second, below, above, may_coincide in ready.pairs:
        meet = f"{below} < p{second} - p{first} < {above}"
        conditions.append(f"({meet} and p{second} != p{first})" if may_coincide else f"({meet})")
    return [f"if {' or '.join(conditions)}: return other(*given, **kwargs)"]


def _outputs(ready: CachedCall, args: tuple[Any, ...], names: dict[str, object]) -> list[str]:
    lines = []
    for at, maker in enumerate(ready.makers, len(args)):
        names[f"make{at}"] = maker
        lines += [f"a{at}, p{at} = make{at}()", f"if p{at} % {cuda.VECTOR_BYTES}: return other(*given, **kwargs)"]
    return lines


def _launch(launch: CachedLaunch, names: dict[str, object]) -> list[str]:
    words = [str(word) for word in launch.template]
    for slot, argument, offset in launch.pointers:
        words[slot] = f"p{argument} + {offset}" if offset else f"p{argument}"
    for slot, argument, encoder in launch.scalars:
        names[f"encode{slot}"] = encoder
        words[slot] = f"encode{slot}(a{argument})"
    listed = ", ".join(words)
    return [
        "target = targets.get(stream(device))",
        f"if target is None: again(({listed},), stream(device))",
        f"else: launch(target, config, kernel, {listed})",
    ]
