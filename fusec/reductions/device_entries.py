"""Repeated reductions on a device: what the first call of a kind worked out, found again by attributes of its arrays.

Only for calls of arrays of one library and numbers, on the stream that is current there, that allocate their outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fusec import forking
from fusec.device_entries import Encoder
from fusec.device_plans import encoder_of
from fusec.records import dataclass
from fusec.runtime import cuda
from fusec.scalars import SCALAR_TYPES

if TYPE_CHECKING:
    from fusec.reductions.device_calls import Call, Plan
    from fusec.reductions.kernels import Reducing

Callee = Callable[..., object]
MAX_READY = 256  # kinds of call remembered for a choice of axes


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel: its words, those that are addresses of inputs, of outputs, and in memory between, and numbers.

    inputs, outputs, between: (slot, argument or output, offset in bytes), of `between` without the one in the middle.
    """

    launcher: cuda.Launcher
    template: tuple[int, ...]
    inputs: tuple[tuple[int, int, int], ...]
    outputs: tuple[tuple[int, int, int], ...]
    between: tuple[tuple[int, int], ...]
    numbers: tuple[tuple[int, int, Encoder], ...]


class Ready:
    """A kind of call whose arguments only need to be filled in."""

    def __init__(self, kernel: Reducing, plan: Plan, makers: Sequence[Callable[[], tuple[Any, int]]], device: int):
        self.kernel, self.bound, self.makers, self.device = kernel, plan.bound, tuple(makers), device
        self.nbytes = plan.nbytes
        self.allocators: dict[int, Callable[[], Any]] = {}  # by stream
        self.launches = tuple(_launch(kernel, plan, at) for at in range(len(plan.steps)))

    def run(self, values: Sequence[Any], stream: int) -> object:
        """The output, or a tuple of several. values: addresses of arrays, and numbers."""
        made = [make() for make in self.makers]
        held = self._between(stream) if self.nbytes else None
        start = 0 if held is None else int(held.handle)
        for launch in self.launches:
            words = list(launch.template)
            for slot, argument, offset in launch.inputs:
                words[slot] = values[argument] + offset
            for slot, output, offset in launch.outputs:
                words[slot] = made[output][1] + offset
            for slot, offset in launch.between:
                words[slot] = start + offset
            for slot, argument, encoder in launch.numbers:
                words[slot] = encoder(values[argument])
            launch.launcher(words, stream)
        self.kernel.last = self.bound
        return made[0][0] if len(made) == 1 else tuple(array for array, _ in made)

    def _between(self, stream: int) -> Any:
        allocate = self.allocators.get(stream)
        if allocate is None:
            allocate = self.allocators[stream] = cuda.allocator(self.nbytes, self.device, stream)
        return allocate()


def _launch(kernel: Reducing, plan: Plan, at: int) -> Launch:
    step = plan.steps[at]
    places = {param.name: number for number, param in enumerate(kernel.in_params)}
    results = {param.name: number for number, param in enumerate(kernel.out_params)}
    between = dict(step.between)
    pointers = step.arguments.pointers
    return Launch(
        launcher=step.launcher,
        template=tuple(step.arguments.template),
        inputs=tuple((slot, places[name], offset) for slot, name, offset in pointers if name in places),
        outputs=tuple((slot, results[name], offset) for slot, name, offset in pointers if name in results),
        between=tuple((slot, between[name] + offset) for slot, name, offset in pointers if name in between),
        numbers=tuple(
            (slot, places[name], encoder_of(dtype, half, name, kernel.name))
            for slot, name, dtype, half in step.arguments.scalars
        ),
    )


class Repeated:
    """The calls along one choice of axes that are ready; all others go on to `following`."""

    def __init__(self, following: Callee, source: cuda.Source) -> None:
        self.following, self.source = following, source
        self._readers: dict[type, Callable[[Any], tuple[Any, object]]] = {source.kind: source.read}
        self._ready: dict[object, Ready] = {}

    def __call__(self, *args: object) -> object:
        """Run, or go on."""
        values, marks = [], []
        try:
            for arg in args:
                value, mark = self._readers[type(arg)](arg)
                values.append(value)
                marks.append(mark)
            ready = self._ready[tuple(marks)]
            return ready.run(values, self.source.stream(ready.device))
        except Exception:  # an unknown type or kind of call, an array that refuses, no memory: told by the long way
            return self.following(*args)

    def add(self, args: Sequence[object], ready: Ready) -> None:
        """Remember a kind of call by its arguments."""
        numbers = dict.fromkeys((type(arg) for arg in args if isinstance(arg, SCALAR_TYPES)), _read_number)
        self._readers |= numbers
        if len(self._ready) >= MAX_READY:
            self._ready.clear()
        self._ready[tuple(self._readers[type(arg)](arg)[1] for arg in args)] = ready


def _read_number(value: object) -> tuple[object, object]:
    return value, type(value)


def remember(kernel: Reducing, args: Sequence[object], call: Call, plan: Plan, following: Callee) -> None:
    """Let later calls of this kind take the short way, if the library of all the arrays has one."""
    arrays = [arg for arg in args if not isinstance(arg, SCALAR_TYPES)]
    source = cuda.source_of(arrays[0])
    if source is None or any(type(each) is not source.kind for each in arrays):
        return
    if not plan.steps or source.stream(call.device) != call.stream:
        return
    typed = zip(kernel.out_params, plan.bound.shapes, strict=True)
    makers = [
        source.maker(shape, range(len(shape)), plan.bound.types[param.name], call.device) for param, shape in typed
    ]
    choice = (call.axis, call.keepdims, False)
    with forking.lock:
        found = kernel.repeated.get(choice)
        if found is None:
            found = Repeated(kernel.quick.get(choice) or following, source)
            kernel.repeated[choice] = kernel.quick[choice] = found
        if found.source is source:
            found.add(args, Ready(kernel, plan, makers, call.device))
