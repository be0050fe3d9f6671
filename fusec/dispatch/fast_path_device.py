"""The functions that repeated calls on a device run: each is generated for one kind of call and looks nothing up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fusec.base.records import dataclass
from fusec.compiler.pipeline import Specialisation
from fusec.runtime import cuda

Encoder = Callable[[Any], int]


class Pair(NamedTuple):
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
class Ready:
    """A kind of call whose arguments only need to be filled in."""

    launch: CachedLaunch
    makers: tuple[Callable[[], tuple[Any, int]], ...]  # of the outputs that the call allocates
    written: tuple[int, ...]  # positions of the outputs that the caller gives
    pairs: tuple[Pair, ...]  # arrays that must not meet
    specialisation: Specialisation  # for KernelSpec.remember


def entry_of(
    ready: Ready,
    args: tuple[Any, ...],
    source: cuda.ArrayLibrary,
    device: int,
    other: Callable[..., object],
    remember: Callable[[Specialisation], None],
    nin: int,
    returns: str,
) -> Callable[..., object]:
    """A function for calls with arguments like `args`; it hands all others, and failures, to `other`.

    nin: how many inputs there are, after which `out` may be a keyword. returns: "outputs", "tuple" or "nothing". How
    much is asked of an array is up to its source: see Source.facts.
    """
    names: dict[str, object] = {"other": other, "remember": remember, "spec": ready.specialisation, "device": device}
    launcher = ready.launch.launcher
    names |= {"stream": source.stream, "targets": launcher.targets, "launch": launcher.launch}
    names |= {"config": launcher.config, "kernel": launcher.kernel, "again": launcher}
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
    lines = [*addresses, *_checks(ready, args, source), *_outputs(ready, args, names), *_launch(ready.launch, names)]
    given = [f"a{at}" for at in range(len(args))]
    made = [f"a{len(args) + at}" for at in range(len(ready.makers))]
    results = made or [f"a{at}" for at in sorted(ready.written)]
    answer = f"({', '.join(results)},)" if returns == "tuple" or len(results) != 1 else results[0]
    lines += ["remember(spec)", f"return {'None' if returns == 'nothing' else answer}"]
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


def _checks(ready: Ready, args: tuple[Any, ...], source: cuda.ArrayLibrary) -> list[str]:
    """Alignment as in the first call, and arrays that lie apart."""
    conditions = [f"p{at} % {cuda.VECTOR_BYTES} != rest{at}" for at, arg in enumerate(args) if type(arg) is source.kind]
    for first, second, below, above, may_coincide in ready.pairs:
        meet = f"{below} < p{second} - p{first} < {above}"
        conditions.append(f"({meet} and p{second} != p{first})" if may_coincide else f"({meet})")
    return [f"if {' or '.join(conditions)}: return other(*given, **kwargs)"]


def _outputs(ready: Ready, args: tuple[Any, ...], names: dict[str, object]) -> list[str]:
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
