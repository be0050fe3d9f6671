"""Calls of fusec's own kernels and functions with traced arrays: part of the trace where an expression can say what
they do, else steps of the plan.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from fusec.arguments.operands import is_number, outputs_of
from fusec.base.records import dataclass, field
from fusec.dispatch.checked import FAULT
from fusec.dispatch.interception import intercepted
from fusec.dispatch.notes import Notes
from fusec.dispatch.planned import Planned
from fusec.dispatch.spec import CallOptions
from fusec.errors import FusecError
from fusec.errors.fusing import NotFusable
from fusec.frontends.python.types import PythonType
from fusec.fusion.functions import libraries
from fusec.fusion.functions.inlining import NotPureError, outputs_of_call, outputs_of_graph
from fusec.fusion.functions.libraries import Asked, Place, filled, parts_of_result, rebuilt
from fusec.fusion.trace import tracer
from fusec.fusion.trace.elementwise import WEAK
from fusec.fusion.trace.failing import restricting
from fusec.fusion.trace.tables import FUNCTIONS
from fusec.fusion.trace.trace import here, recorded_by
from fusec.fusion.trace.trace_values import ArrayValue, LibraryCall, outermost_first
from fusec.fusion.trace.tracer import Tracer
from fusec.library.graph_sources import ReducingSource

OUTSIDE = "make it of an argument, e.g. with np.zeros_like(x), or pass it as one"
FIRST = 257  # among the integers that stand for those passed by value: no two are one object
TWINS = frozenset(
    "sum prod nansum nanprod any all min max nanmin nanmax mean nanmean var std ptp count_nonzero argmin argmax".split()
)  # functions of fusec that NumPy's functions of the same name say under fuse


@dataclass(eq=False)
class OutputNotes(Notes):
    """Notes that keep the outputs of every call."""

    made: list[tuple[Any, ...]] = field(default_factory=list)

    def call(self, kernel: Planned, args: tuple[object, ...], out: object, options: CallOptions) -> tuple[Any, ...]:
        """Note a call of a kernel, and its outputs."""
        self.made.append(super().call(kernel, args, out, options))
        return self.made[-1]


def compose(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any] | None:
    """The result of a function of fusec for traced arguments, in a tuple; None for fused ones, which are traced."""
    if getattr(function, "__module__", "") == "fusec.fusion.fuse":
        return None
    plain_call = getattr(type(args[0]), "plain_call", None) if args else None
    if plain_call is not None:
        function, args, options = plain_call(args[0], args[1:], options)
    return (_Composed(function, args, options).result(),)


def called(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The result of a function of fusec that is a step of its own between kernels, for traced arguments."""
    return _Composed(function, args, options).called()


class _Composed:
    """One call. It is run on small arrays, with kernels that only note what they are asked for."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.function, self.given = function, (args, options)
        self.trace = libraries._trace_in((args, options))
        self.tracers: list[Tracer] = []
        placed = (self._placed(args), self._placed(options))
        examples = [self._example(number, each) for number, each in enumerate(self.tracers)]
        self.asked = Asked(function, placed[0], placed[1], examples)
        self.notes = OutputNotes()
        small = libraries._Sizes(self.asked)
        self.values = [small.stand_in(each) for each in examples]
        before = [each.tobytes() if isinstance(each, np.ndarray) else b"" for each in self.values]
        self.found = self._noted()
        self.changed = [
            isinstance(each, np.ndarray) and each.tobytes() != held
            for each, held in zip(self.values, before, strict=True)
        ]
        self.parts = parts_of_result(self.found)
        self.written = self._written()

    def result(self) -> Any:
        """The result, of traced arrays."""
        values = self._twin() or self._inlined()
        if values is None:
            return self.called()
        return rebuilt(self.found, [self._made(*pair) for pair in zip(self.parts, values, strict=True)])

    def _made(self, part: Any, value: ArrayValue | None) -> Any:
        """A result: the array given for it, or a new one."""
        given = _same(part, self.values) if isinstance(part, np.ndarray) else None
        if given is not None:
            return self.tracers[given]
        return None if value is None else tracer.made(self.trace, value, isinstance(part, np.generic))

    # --- what it would do ----------------------------------------------------------------------------------------

    def _placed(self, given: Any) -> Any:
        """Arguments with places for traced arrays and numbers."""
        if isinstance(given, Tracer):
            value = given._memory.value
            literal = None if value is None or given._steps else value.scalar.literal
            if literal is not None:
                return literal
            at = next((at for at, each in enumerate(self.tracers) if each is given), len(self.tracers))
            self.tracers += [given] if at == len(self.tracers) else []
            return Place(at)
        if type(given) in (list, tuple):
            return type(given)(map(self._placed, given))
        return {name: self._placed(each) for name, each in given.items()} if type(given) is dict else given

    def _example(self, number: int, given: Tracer) -> Any:
        """What a traced array or number looks like."""
        if given._is_scalar:
            kind = given._read().kind
            if not isinstance(kind, PythonType):
                return given.dtype.type(1)
            made = WEAK[kind]
            return given._number("an argument") if made is bool else made(FIRST + number)
        return given._seen

    def _noted(self) -> Any:
        """The result for small arrays. Raises the error that the call raises."""
        with warnings.catch_warnings(), np.errstate(all="ignore"), recorded_by(None), intercepted(self.notes):
            warnings.simplefilter("ignore")
            try:
                return self.asked.made(self.values)
            except FusecError:
                for each in self.tracers:
                    if each._is_scalar and each._read().is_weak:  # it may have to be known
                        each._number("an argument")
                self.asked.made([_large(each) for each in self.asked.examples])  # whose shapes the message is to have
                raise

    def _written(self) -> list[int]:
        """The traced arrays that the call writes."""
        stored: list[Any] = []
        for call in self.notes.calls:
            given = (*call.args, *outputs_of(call.out))
            stored += [each for each, is_out in zip(given, call.kernel.is_written, strict=False) if is_out]
        arrays = [each for each in stored if isinstance(each, np.ndarray)]
        outside = [each for each in _parts(self.given) if isinstance(each, np.ndarray) and not isinstance(each, Tracer)]
        if any(np.may_share_memory(each, other) for each in arrays for other in outside):
            raise NotFusable("writing into an array that the function made outside of the trace", OUTSIDE).at(here())
        return [
            at for at, each in enumerate(self.values)
            if self.changed[at]
            or (isinstance(each, np.ndarray) and any(np.may_share_memory(each, other) for other in arrays))
        ]  # fmt: skip

    @property
    def _is_library(self) -> bool:
        """Whether it is one of fusec's built-in functions."""
        return str(getattr(self.function, "__module__", "")).startswith("fusec.library.")

    # --- as a part of the trace ----------------------------------------------------------------------------------

    def _twin(self) -> list[ArrayValue | None] | None:
        """The value of NumPy's function of the same name; None if there is none."""
        name = getattr(self.function, "__name__", "")
        (args, options) = self.given
        if not (args and isinstance(args[0], Tracer)):
            return None
        if name not in TWINS or not self._is_library or {"out", "mean"} & options.keys() or self.written:
            return None
        (found,) = [FUNCTIONS[name](*args, **options)]
        if isinstance(self.found, tuple) or found.dtype != self.found.dtype or found.ndim != np.ndim(self.found):
            return None
        return [found._read()]

    def _inlined(self) -> list[ArrayValue | None] | None:
        """The values of all results, if one kernel makes them that is as good as an expression; else None."""
        if len(self.notes.calls) != 1:
            return None
        (call,), (made,) = self.notes.calls, self.notes.made
        places = [_same(part, made) for part in self.parts]
        if any(at is None and part is not None for at, part in zip(places, self.parts, strict=True)):
            return None
        inputs = call.args[: call.kernel.nin]
        try:
            values = [self._value(each) for each in inputs]
            if not call.kernel.kind.along_axes:
                if call.options.size != -1:
                    return None
                outputs = outputs_of_call(self.trace, call.kernel, inputs, values)
            elif isinstance(call.kernel.definition, ReducingSource) and call.options.where is True:
                graph = call.kernel.definition.graph
                outputs = outputs_of_graph(self.trace, graph, values, list(map(is_number, inputs)), call.options)
            else:
                return None
        except NotPureError:
            return None
        for at in self.written:
            place = _same(self.values[at], made)
            if place is None:
                return None
            self.tracers[at]._write(outputs[place])
        return [None if place is None else outputs[place] for place in places]

    def _value(self, given: Any) -> ArrayValue:
        """What stands behind an argument of a kernel."""
        found = next((at for at, each in enumerate(self.values) if each is given), None)
        if found is not None:
            return self.tracers[found]._read()
        is_default = is_number(given) and self._is_library and not any(each._is_scalar for each in self.tracers)
        if not is_default and not any(each is given for each in _parts(self.given)):
            raise NotPureError  # what the function has made of its arguments
        return tracer._operand(self.trace, given)

    # --- as a step of the plan -----------------------------------------------------------------------------------

    def called(self) -> Any:
        """The results of a step that calls the function."""
        operands = libraries._Operands(self.trace)
        places = [operands.taken(each) for each in self.tracers]
        kept = [_same(part, self.values) for part in self.parts]
        wanted = [each for each, at in zip(self._large(), kept, strict=True) if at is None]
        results = [libraries._result_of(self.trace, each) for each in wanted if each is not None]
        changed = [libraries._result_of(self.trace, self.tracers[at]._seen) for at in self.written]
        numbers = [isinstance(each, np.generic) for each in self.values]
        is_plain = not self.written and not any(numbers) and all(each is None for each in kept)
        run = self._plainly(places) if is_plain and len(results) == len(self.parts) else None
        run = run or partial(_run, self.asked, places, numbers, (self.written, kept))
        may_raise = any(leaf.buffer is None for leaf in operands.leaves) or any(
            each.kernel.checks or any(param.name == FAULT for param in each.kernel.params) for each in self.notes.calls
        )
        if may_raise:
            libraries.keep_written(self.trace)
        buffers = tuple(each._memory.buffer for each in (*results, *changed))
        self.trace.statements.append(
            LibraryCall(
                self._name(), run, [leaf.input for leaf in operands.leaves], buffers, may_raise, here(),
                kernels=len(self.notes.calls),
            )
        )  # fmt: skip
        for at, each in zip(self.written, changed, strict=True):
            self.tracers[at]._write(each._read())
        rest = iter(results)
        found = [
            self.tracers[at] if at is not None else None if part is None else next(rest)
            for part, at in zip(self.parts, kept, strict=True)
        ]
        return rebuilt(self.found, found)

    def _plainly(self, places: Sequence[Any]) -> Callable[..., Any] | None:
        """The function of its operands, if constants alone follow these among its arguments."""
        args, options, count = self.asked.args, self.asked.options, len(places)
        constants = (*args[count:], *options.values())
        in_order = [Place(at) for at in range(count)]
        is_alone = not any(isinstance(each, (Place, list, tuple, dict)) for each in constants)
        if not is_alone or [*places] != in_order or [*args[:count]] != in_order:
            return None
        return partial(_run_plainly, self.function, args[count:], options)

    def _large(self) -> Sequence[Any]:
        """The results in their real shapes, which may have extents that no argument has."""
        with recorded_by(None), intercepted(Notes()):
            return parts_of_result(self.asked.made([_large(each) for each in self.asked.examples]))

    def _name(self) -> str:
        """What reports call it."""
        owner = getattr(self.function, "__self__", self.given[0][0] if self.given[0] else None)
        name = getattr(owner, "name", "")
        return name if isinstance(name, str) and name else f"fusec.{getattr(self.function, '__name__', 'kernel')}"


def _run_plainly(
    function: Callable[..., Any], rest: tuple[Any, ...], options: Mapping[str, Any], *given: Any
) -> tuple[Any, ...]:
    """Call the function on its operands, whose results are new."""
    return parts_of_result(function(*given, *rest, **options))


def _run(
    asked: Asked, places: Sequence[Any], numbers: Sequence[bool], about: tuple[list[int], list[int | None]], *given: Any
) -> tuple[Any, ...]:
    """Call the function: its results that are no arguments, then what arguments hold afterwards."""
    written, kept = about
    values = [given[each.number] if isinstance(each, Place) else each for each in places]
    values = [
        each[()] if number and isinstance(each, np.ndarray) else each
        for each, number in zip(values, numbers, strict=True)
    ]
    for at in written:
        array = values[at]
        values[at] = np.array(array) if isinstance(array, np.ndarray) else Planned.copier().run((array,))[0]
    found = parts_of_result(asked.function(*filled(asked.args, values), **filled(asked.options, values)))
    results = [each for each, at in zip(found, kept, strict=True) if at is None and each is not None]
    return (*results, *(values[at] for at in written))


def _parts(given: Any) -> Iterator[Any]:
    """What stands in some arguments."""
    yield given
    if isinstance(given, (list, tuple, dict)):
        for each in given.values() if isinstance(given, dict) else given:
            yield from _parts(each)


def _large(example: Any) -> Any:
    """An array of some shape that may be looked at."""
    if not isinstance(example, np.ndarray):
        return example
    axes = outermost_first(example)
    return np.zeros([example.shape[axis] for axis in axes], example.dtype).transpose(np.argsort(axes))


def _same(part: Any, made: Sequence[Any]) -> int | None:
    """Which of some arrays a result is."""
    for at, each in enumerate(made):
        if part is each:
            return at
        if isinstance(part, np.generic) and isinstance(each, np.ndarray) and not each.ndim and len(made) == 1:
            return at if part.dtype == each.dtype else None
    return None


Tracer.__fusec_compose__ = staticmethod(restricting(compose))  # type: ignore[attr-defined]
