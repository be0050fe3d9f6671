"""Repeated reductions and scans on a device: the results of the first call of a kind, found by attributes of its
arrays.

Only for calls of arrays of one library and numbers, on the stream that is current there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fusec.arguments.scalars import SCALAR_TYPES
from fusec.base import locks
from fusec.base.recent import Recent
from fusec.dispatch.axis_paths import Paths, choice_of
from fusec.dispatch.axis_spec import AxisSpec
from fusec.dispatch.device_axis import Call, Plan
from fusec.dispatch.device_plans import cached_launch, pairs_of
from fusec.dispatch.device_steps import view_of
from fusec.dispatch.fast_path_device import Pair
from fusec.runtime import cuda

Callee = Callable[..., object]
MAX_READY = 256  # kinds of call remembered for a choice of axes


class Ready:
    """A kind of call whose arguments only need to be filled in. note: records the kernel's last call."""

    def __init__(
        self, kernel: AxisSpec, plan: Plan, call: Call, note: Callable[[], None], source: cuda.ArrayLibrary
    ) -> None:
        self.nin, self.note = kernel.nin, note
        self.device, self.stream = call.device, source.stream
        self.makers: tuple[Callable[[], tuple[Any, int]], ...] = ()  # of the outputs that a call makes
        if call.outputs is None:
            typed = [
                (shape, plan.bound.types[each.name])
                for shape, each in zip(plan.bound.shapes, kernel.out_params, strict=True)
            ]
            self.makers = tuple(source.maker(shape, range(len(shape)), dtype, call.device) for shape, dtype in typed)
        # Arrays that must not meet.
        self.pairs = tuple((each.first, each.second, each.below, each.above) for each in _pairs(kernel, call))
        self.nbytes = plan.steps.nbytes
        self.allocators: dict[int, Callable[[], Any]] = {}  # by stream
        self.launches = tuple(
            cached_launch(kernel.signature, each.launcher, each.arguments, dict(each.between))
            for each in plan.steps.order
        )

    def run(self, args: tuple[object, ...], values: list[Any]) -> object:
        """The output, or a tuple of several. values: addresses of arrays, and numbers. Raises if arrays meet."""
        for first, second, below, above in self.pairs:
            if below < values[second] - values[first] < above:
                raise BufferError("an output shares memory with another array")
        stream, made = self.stream(self.device), args[self.nin :]
        if self.makers:
            found = [make() for make in self.makers]
            made = tuple([array for array, _ in found])
            values += [address for _, address in found]
        held = self._between(stream) if self.nbytes else None
        start = 0 if held is None else int(held.handle)
        for launch in self.launches:
            words = list(launch.template)
            for slot, argument, offset in launch.pointers:
                words[slot] = values[argument] + offset
            for slot, offset in launch.between:
                words[slot] = start + offset
            for slot, argument, encoder in launch.scalars:
                words[slot] = encoder(values[argument])
            launch.launcher(words, stream)
        self.note()
        return made[0] if len(made) == 1 else made

    def _between(self, stream: int) -> Any:
        allocate = self.allocators.get(stream)
        if allocate is None:
            allocate = self.allocators[stream] = cuda.allocator(self.nbytes, self.device, stream)
        return allocate()


class Repeated:
    """The calls of one choice that are ready; all others go to `following`."""

    def __init__(self, following: Callee) -> None:
        self.following = following
        self._readers: dict[type, Callable[[Any], tuple[Any, object]]] = {}
        self._ready: Recent[object, Ready] = Recent(MAX_READY)

    def __call__(self, *args: object) -> object:
        """Run, or go on."""
        values, marks = [], []
        try:
            for arg in args:
                value, mark = self._readers[type(arg)](arg)
                values.append(value)
                marks.append(mark)
            return self._ready.get(tuple(marks)).run(args, values)  # type: ignore[union-attr]
        except Exception:  # an unknown type or kind of call, an array that refuses, no memory: told by the long way
            return self.following(*args)

    def add(self, args: Sequence[object], source: cuda.ArrayLibrary, ready: Ready) -> None:
        """Store a kind of call by its arguments."""
        numbers = dict.fromkeys((type(arg) for arg in args if isinstance(arg, SCALAR_TYPES)), _read_number)
        self._readers |= {**numbers, source.kind: source.read}
        self._ready[tuple(self._readers[type(arg)](arg)[1] for arg in args)] = ready


def _read_number(value: object) -> tuple[object, object]:
    return value, type(value)


def remember(
    paths: Paths, args: Sequence[object], call: Call, ready: Callable[[cuda.ArrayLibrary], Ready], following: Callee
) -> None:
    """Let later calls of this kind take the fast path, if the library of all the arrays has one.

    args: the inputs, and the outputs if they are given. following: what answers all other calls.
    Requires: nothing was copied, cleared or left out by a mask.
    """
    arrays = [arg for arg in args if not isinstance(arg, SCALAR_TYPES)]
    source = cuda.source_of(arrays[0])
    if source is None or any(type(each) is not source.kind for each in arrays):
        return
    if source.stream(call.device) != call.stream:
        return
    made, choice = ready(source), choice_of(call.along, call.outputs is not None)
    with locks.lock:
        found = paths.repeated.get(choice)
        if found is None:
            found = Repeated(paths.quick.get(choice) or following)
            paths.repeated[choice] = paths.quick[choice] = found
        found.add(args, source, made)


def _pairs(kernel: AxisSpec, call: Call) -> tuple[Pair, ...]:
    """Given outputs, each with whatever it must not meet: results are stored before all elements are read."""
    arrays = dict(call.inputs)
    arrays |= {param.name: each for param, each in zip(kernel.out_params, call.outputs or (), strict=False)}
    views = [view_of(arrays[param.name]) if param.name in arrays else None for param in kernel.params]
    written = [position >= kernel.nin for position in range(kernel.nargs)]
    return pairs_of(views, written, [True] * kernel.nargs, kernel.nargs)
