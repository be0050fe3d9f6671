"""One run of a function on tracers, and the plan made of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from types import CellType, FunctionType
from typing import Any

import numpy as np

from fusec.arguments.operands import dtype_of, without_memory
from fusec.base import dtypes
from fusec.base.contexts import run_holding
from fusec.base.diagnostics import instance_of
from fusec.base.dtypes import DType
from fusec.codegen import ON_DEVICE
from fusec.errors import FusecError
from fusec.errors.arguments import ShapesDoNotBroadcast
from fusec.errors.fusing import ComplexIntoReal, NegativePower, NotTraceable
from fusec.errors.python import NumberTooLarge
from fusec.errors.reductions import AxisOutOfBounds
from fusec.frontends.python.types import PYTHON_TYPES, PythonType
from fusec.fusion.arguments import CallArguments
from fusec.fusion.functions import randomness
from fusec.fusion.functions.joining import store_in_places
from fusec.fusion.functions.masked import Picked
from fusec.fusion.functions.parts import ComplexPart
from fusec.fusion.fused_plan import Bound, FusedPlan
from fusec.fusion.memory.calls import CallStep
from fusec.fusion.memory.host_memory import HostMemory
from fusec.fusion.memory.results import (
    LeftOutside,
    Returned,
    ReturnedConstant,
    ReturnedItems,
    ReturnedPairs,
    ReturnedParts,
    places_of,
)
from fusec.fusion.memory.slots import replayed
from fusec.fusion.outside import constants
from fusec.fusion.outside.constants import exact, maker_of
from fusec.fusion.outside.reads import ARGUMENT, GIVEN, Location, title_of
from fusec.fusion.outside.standins import STANDS_IN, let_go
from fusec.fusion.recording import Numbers, Recording, Stored
from fusec.fusion.schedule.forwarding import forward
from fusec.fusion.schedule.overwriting import leave_out_overwritten
from fusec.fusion.schedule.plan import KernelStep, MapKernel, PlanBuilder
from fusec.fusion.schedule.repeats import leave_out_repeats
from fusec.fusion.schedule.resizing import PlanTemplate, template_of
from fusec.fusion.trace import tracer
from fusec.fusion.trace.elementwise import WEAK
from fusec.fusion.trace.lines import users
from fusec.fusion.trace.needed import of_memory
from fusec.fusion.trace.numbers import is_extent, picking, plain
from fusec.fusion.trace.trace import RECORDING, NeedsNumberError, Trace
from fusec.fusion.trace.trace_values import ArrayValue, Buffer, Leaf, geometry
from fusec.fusion.trace.tracer import Tracer, made
from fusec.ir.expr import Expr
from fusec.ir.graph import Input

RESULTS = "return arrays, numbers, constants, and tuples, lists and dictionaries of them"
STORING = "setting an array element with a sequence"  # what NumPy says of a traced number that it cannot store
LIKE_NUMPY = (
    ShapesDoNotBroadcast,
    ComplexIntoReal,
    AxisOutOfBounds,
    NegativePower,
    NumberTooLarge,
)  # errors of calls that NumPy refuses too, where it comes to them


class TracedRun:
    """One run of the function on tracers. flat: the arrays and numbers of the call, those from outside last."""

    def __init__(self, name: str, found: CallArguments, values: frozenset[int], numbers: Numbers, pattern: Any) -> None:
        self.flat: list[Any] = [*found.flat]
        self.trace, self.function, self.found, self.values = Trace(name, self.flat), found.function, found, values
        self.recording = Recording(name, numbers, self._operand, found.labelled)
        self.recording.described = self._described
        self.recording.trace = self.trace
        self.trace.extents.given = len(found.flat)
        self.trace.labelled, self.trace.swapped = {**found.labelled_places}, {**found.swapped}
        if found.side is not None:
            self._see_device(found.side.arrays[0].given, found.side.arrays[0])
        self.pattern = pattern
        self.groups = dict(pattern[0]) if pattern is not None else {}
        self.arguments: dict[int, Tracer] = {}
        self.builder: PlanBuilder  # while the plan is made
        self.returned: dict[int, tuple[Tracer, Returned]] = {}
        self.parts: ReturnedParts = {}
        self.seen = set[int]()  # identities of memory of which arrays are returned that are no parts of complex ones

    def _see_device(self, given: Any, there: Any) -> None:
        """Tell the trace where arrays are, of which this is one. there: the same as `DeviceSide` describes it."""
        if self.trace.device == "cpu":
            self.trace.device = getattr(given, "device", ON_DEVICE)
            self.trace.row_blocks = self.found.side.row_blocks(there)

    def _described(self, value: Any) -> Any:
        """An array on a device, which the function reads from outside."""
        found = self.found.described(value)
        self._see_device(value, found)
        return found

    def plan(self) -> FusedPlan:
        """Trace, and schedule the trace. What the function did before it raised an exception is done as well."""
        try:
            return self._plan()
        finally:
            for each in self.recording.classes.values():
                let_go(each)

    def _plan(self) -> FusedPlan:
        result, problem = self.ran()
        stored = self.recording.stored(self.function)
        self.found.check_places(self.flat)
        self.trace.finish()
        needed: list[Buffer] = []
        self.builder = PlanBuilder(self.trace, needed)
        try:
            self._see([result, *(each.value for each in stored)])
            rebuilt = self._returned(result, needed)
        except RecursionError:
            raise NotTraceable("a fused function cannot return a container that holds itself", RESULTS).at() from None
        stores = tuple(self._store(each, needed) for each in stored)
        self.trace.finish()
        store_in_places(self.trace, needed)
        leave_out_overwritten(self.trace, needed)
        forward(self.trace, needed)
        leave_out_repeats(self.trace, needed)
        steps = tuple(self.builder.steps())
        writes = tuple(memory.buffer.place for memory in self.trace.written if memory.buffer is not None)
        arrays = [at for at, each in enumerate(self.flat) if isinstance(each, np.ndarray)]
        numbers = tuple(self.builder.slots.numbers)
        is_alone = not stores and problem is None and self.pattern is None
        template = self._template(steps) if is_alone else None
        return FusedPlan(
            steps, HostMemory.of(self.builder.slots), rebuilt, writes, tuple(dict.fromkeys(self.trace.notes)),
            tuple((written, at) for written in writes for at in arrays if at != written),
            self.recording.guards(), self.pattern, stores, numbers,
            None if stores or self.trace.numbers else self._quick(steps, writes, rebuilt), problem,
            (*self.found.names(), *map(title_of, self.recording.paths)), template=template,
            bounds=self._bounds(steps, None if writes or stores else self.trace.compared),
        )  # fmt: skip

    def _template(self, steps: Sequence[KernelStep | CallStep]) -> PlanTemplate | None:
        """What makes plans for other extents."""
        return template_of(self.builder, steps, [*map(self.found.outline, self.flat)], self.parts)

    def _bounds(
        self, steps: Sequence[KernelStep | CallStep], compared: Collection[Expr] | None
    ) -> tuple[Bound, ...]:  # fmt: skip
        """Which integers of a call must fit which dtypes, lest an error comes when something is written already.

        compared: those that need not fit, but are passed as if they did, if nothing is written.
        """
        found = dict[Bound, None]()
        pairs = [pair for step in steps for pair in zip(step.leaves, step.inputs, strict=True)]
        for leaf, slot in pairs:
            dtype, number = leaf.input.type, leaf.number
            if number is None or number[0] == "known" or not dtype.is_integer:
                continue
            if compared is not None and leaf.input not in compared:
                continue
            places = frozenset(self.trace.arguments_of(number))
            value = self.trace._number_at(number)
            if type(value) is int:
                limits = np.iinfo(dtype.numpy)
                found[slot, int(limits.min), int(limits.max), places] = None
        return tuple(found)

    def ran(self) -> tuple[Any, Exception | None]:
        """What the function returns for tracers, or raises, with the traced parts of the exception."""
        try:
            result = self._result()
            if self.trace.needed is not None:
                raise self.trace.needed
            return result, None
        except Exception as raised:  # whatever the function raises; its arguments may be traced
            if self.trace.needed is not None:
                raise self.trace.needed from None
            is_refused = isinstance(raised, FusecError) and not isinstance(raised.error, LIKE_NUMPY)
            if is_refused:
                raise
            if (problem := of_memory(raised)) is not None:
                raise problem from raised
            is_made = self.recording.made_any
            own = {name: each for name, each in vars(raised).items() if is_made((each,))}
            return [raised.args if is_made(raised.args) else None, own], users(raised)

    def _result(self) -> Any:
        """What the function returns for tracers."""
        recording, function = self.recording, self.function
        if isinstance(function, FunctionType):
            called = recording.called(function)
        else:
            called = recording.seen(Location(GIVEN, function, None, ("function",)), function)
        args = [each(self) for each in self.found.args]
        options = {name: each(self) for name, each in self.found.options.items()}
        try:
            return run_holding(RECORDING, recording, partial(called, *args, **options))
        except ValueError as problem:
            asked = problem.__cause__
            if str(problem).startswith(STORING) and isinstance(asked, (FusecError, NeedsNumberError)):
                raise asked from None
            raise
        finally:
            recording.is_over = True

    def _quick(
        self, steps: Sequence[KernelStep | CallStep], writes: Sequence[int], result: Any
    ) -> Callable[..., Any] | None:
        """The one kernel, if it takes some of the arguments as they are and gives what the function returns."""
        step = steps[0] if len(steps) == 1 else None
        if not isinstance(step, KernelStep) or writes:
            return None
        is_alone = len(self.flat) == len(self.found.flat) and not self.found.objects
        made = [slot for slot, _ in step.makes]
        takes_arguments = all(0 <= slot < len(self.flat) for slot in step.inputs)
        if not is_alone or not takes_arguments or not made or places_of(result) != made:
            return None
        if not isinstance(step.kernel, MapKernel) or step.is_plain(len(self.flat)):
            return step.kernel if isinstance(step.kernel, MapKernel) else None
        kernel, pick = step.kernel, picking(step.inputs)
        return lambda *flat: kernel(*pick(flat))

    # --- what the function is given ------------------------------------------------------------------------------

    def constant(self, value: Any) -> Any:
        """A constant, but for NumPy itself and functions that make arrays, which belong to the trace."""
        return constants.namespace_of(value) or randomness.traced(value)

    def container(self, kind: Any, items: list[Any], owner: int | str) -> Any:
        """A tuple, list or dictionary among the arguments. owner: the argument that has it."""
        made = maker_of(kind)(items)
        self.recording.watch(made, self.found.name_of(owner))
        return made

    def object(self, place: int) -> Any:
        """An object or function that the trace reads."""
        return self.recording.seen(Location(ARGUMENT, place, None, ("argument", place)), self.found.objects[place])

    def _operand(self, value: Any) -> Any:
        """An array or number from outside, which calls find behind the arguments."""
        self.flat.append(value)
        return self.argument(len(self.flat) - 1)

    def argument(self, place: int) -> Any:
        """An array or a number among the arguments."""
        given = self.flat[place]
        array = self.found.outline(given)
        if array is not None:
            if place not in self.arguments:
                dtype = dtype_of(array, self.found.name(place), self.trace.name)
                given = without_memory(array)
                group = self.groups.get(place, place)
                same = self.arguments.get(group)
                if same is not None and geometry(same._seen) == geometry(given):
                    return same
                if same is not None:
                    self.trace.shared.add(group)
                    self.trace.settle(same._memory)  # what was written before this one was read from outside
                memory = self.trace.argument(place, given, dtype, group)
                self.arguments[place] = Tracer(self.trace, memory, (), given)
            return self.arguments[place]
        if place in self.values:
            return given
        return tracer.made(self.trace, self.trace.number(("argument", place), self._kind(given)), True)

    def _kind(self, given: Any) -> PythonType | DType:
        """The type of a number. Raises NotTraceable."""
        if type(given) in PYTHON_TYPES:
            return PYTHON_TYPES[type(given)]
        found = dtypes.from_numpy(given.dtype)
        if found is None:
            raise NotTraceable(f"a number of dtype {given.dtype} cannot be fused", "convert it to float64").at()
        return found

    # --- what is returned ----------------------------------------------------------------------------------------

    def _see(self, result: Any) -> None:
        """Note the memory of arrays that are returned. Raises NotFusable for parts that came before a write."""
        if isinstance(result, Tracer):
            self.trace.parts.check(result._memory)
            if type(result) is not ComplexPart:
                self.seen.add(id(result._memory))
        elif type(result) in (tuple, list, *constants.DICTS) or constants.is_named_tuple(result):
            for each in result.values() if isinstance(result, dict) else result:
                self._see(each)

    def _returned(self, result: Any, needed: list[Buffer]) -> Any:
        """How calls make what the function returns."""
        if isinstance(result, Tracer):
            if id(result) not in self.returned:  # asked again, its memory is settled
                self.returned[id(result)] = (result, self._array(result, needed))
            return self.returned[id(result)][1]
        if type(result) in (tuple, list) or constants.is_named_tuple(result):
            return ReturnedItems(maker_of(type(result)), tuple(self._returned(each, needed) for each in result))
        if type(result) in constants.DICTS:
            parts = tuple(self._returned(each, needed) for each in result.values())
            return ReturnedPairs(type(result), tuple(result), parts)
        if isinstance(result, Picked):
            result.refuse()
        return self._untraced(result)

    def _untraced(self, result: Any) -> Any:
        """What is not traced is made anew at every call, or is what it was from outside. Raises NotTraceable."""
        if is_extent(result):
            return ReturnedConstant(plain(result))
        if isinstance(result, np.ndarray) and not result.dtype.hasobject:
            return ReturnedConstant(np.array(result, order="K", subok=not hasattr(result, STANDS_IN)), True)
        if isinstance(result, constants.NumPy):
            return ReturnedConstant(constants.origin_of(result))
        _, origin, at = self.recording.origins.get(id(result), (result, result, -1))
        if at >= 0 and not isinstance(origin, type):
            return Returned(self._picked(at, origin))
        if exact(origin) is not None or constants.is_user_made(origin) or origin is not result:
            return ReturnedConstant(origin)
        raise NotTraceable(f"a fused function cannot return {instance_of(result)}", RESULTS).at()

    def _picked(self, at: int, value: Any) -> int:
        """The place of an object from outside, which calls find behind the arguments."""
        place = len(self.found.flat) + self.recording.pick(at, ())
        if place == len(self.flat):
            self.flat.append(value)
        return place

    def _store(self, stored: Stored, needed: list[Buffer]) -> LeftOutside:
        """What assigns a value outside of the function."""
        value, owner = self._returned(stored.value, needed), stored.owner
        if isinstance(owner, (dict, CellType)):
            return LeftOutside(owner, stored.name, value)
        return LeftOutside(None, stored.name, value, self._picked(owner, self.recording.object_at(owner)))

    def _is_passed(self, leaf: Leaf | None, value: ArrayValue) -> bool:
        """Whether a value is a number that was passed to the function, or that calls compute of such."""
        if leaf is None or leaf.number is None or leaf.number[0] == "known":
            return False
        which, place = leaf.number
        if which == "argument":
            return value.kind == self._kind(self.flat[place])
        return value.is_weak

    def _array(self, result: Tracer, needed: list[Buffer]) -> Returned:
        is_part = type(result) is ComplexPart and result._memory.buffer is None
        if is_part and id(result._memory) not in self.seen:  # nobody sees the complex array
            result = made(self.trace, result._read())
        memory, value = result._memory, result._memory.value
        weak: type | None = None
        if value is not None and not memory.is_argument and result._is_scalar:
            if isinstance(value.kind, PythonType):
                weak = WEAK[value.kind]
            elif memory.is_python:
                weak = bool
            leaf = self.trace.leaves.get(value.expr) if isinstance(value.expr, Input) else None
            if not result._steps and leaf is not None and leaf.number is not None and self._is_passed(leaf, value):
                return Returned(self.builder.slots.number(leaf.number))
        buffer = memory.buffer if memory.is_argument else self.trace.settle(memory)
        assert buffer is not None, "results have memory"
        if buffer.kind == "temporary":
            needed.append(buffer)
        slots = self.builder.slots
        view = slots.view(buffer, replayed(buffer, result._steps))
        found = Returned(slots.buffer(buffer), view, result._is_scalar, weak)
        if result._steps:
            self.parts[found] = (buffer, result._steps)
        return found
