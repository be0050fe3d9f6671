"""fusec.fuse: a function of arrays that is traced for each kind of call and then runs as few kernels."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from pickle import PicklingError
from typing import Any, overload

import numpy as np

from fusec import dtypes
from fusec.dtypes import DType
from fusec.errors.fusing import NotTraceable
from fusec.frontends.python.types import PYTHON_TYPES, PythonType
from fusec.fusing import reducing, routines, tracers, ufuncs
from fusec.fusing.namespace import Namespace
from fusec.fusing.plans import Builder, Fetch, KernelStep, MapKernel, viewed
from fusec.fusing.trace import NeedsNumberError, Trace, literal
from fusec.fusing.values import Buffer, geometry
from fusec.ir.graph import Input
from fusec.modes import usual
from fusec.operands import dtype_of, host_array
from fusec.planned import briefly
from fusec.records import dataclass

MAX_PLANS = 256  # kinds of calls remembered by one function
LOADED = (reducing, routines, ufuncs)  # these fill the tables

Tracer = tracers.Tracer
Result = Callable[[Sequence[Any], list[Any]], Any]


@dataclass(eq=False)
class Plan:
    """What calls of one kind do. size: buffers. writes: arguments that are written. pairs: each of
    these with every other array. quick: does all of it at once.
    """

    steps: tuple[KernelStep, ...]
    size: int
    result: Result
    writes: tuple[int, ...]
    notes: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]
    quick: Callable[..., Any] | None = None

    def may_share(self, args: Sequence[Any]) -> bool:
        """Whether an argument that is written may share memory with another."""
        return any(np.may_share_memory(args[left], args[right]) for left, right in self.pairs)

    def run(self, args: Sequence[Any]) -> Any:
        """Run all kernels; the result of the function."""
        held: list[Any] = [None] * self.size
        for step in self.steps:
            step.run(args, held)
        return self.result(args, held)


class Fused:
    """A function of arrays; see `fusec.fuse`."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._function = function
        self._name = name if name.isidentifier() and name.isascii() else "fused"
        self._plans: dict[Any, Plan] = {}
        self._values: frozenset[int] = frozenset()  # numbers that the function needs as such, by place
        self._lock = threading.Lock()
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call the function on NumPy arrays, numbers, and anything else that it takes."""
        if options:
            return self._general(args, options)
        key: list[Any] = []
        for arg in args:
            kind = type(arg)
            if kind is np.ndarray:
                key += (arg.dtype, arg.shape, arg.strides)
            elif (kind is float or kind is int) and not self._values:
                key.append(kind)
            else:
                return self._general(args, options)
        plan = self._plans.get((*key,))
        if plan is None or (plan.writes and plan.may_share(args)):
            return self._general(args, options)
        return plan.run(args) if plan.quick is None else plan.quick(*args)

    @briefly
    def _general(self, args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        found = _Arguments(args, options)
        if found.is_traced:
            return self._function(*args, **options)
        return self._plan(found).run(found.flat)

    def _plan(self, found: _Arguments) -> Plan:
        """The plan of a call, made at the first of its kind."""
        key = found.key(self._values)
        plan = self._plans.get(key)
        if plan is not None and plan.writes:
            pattern = found.pattern(plan.writes)
            if pattern is not None:
                key = (key, pattern)
                plan = self._plans.get(key)
        if plan is None:
            plan, key = self._made(found)
            with self._lock:
                if len(self._plans) >= MAX_PLANS:
                    self._plans.clear()
                self._plans[key] = plan
        return plan

    def _made(self, found: _Arguments) -> tuple[Plan, Any]:
        """Trace the function, again if numbers turn out to be needed as such or memory to be shared."""
        pattern: Any = None
        while True:
            try:
                with usual():  # of constants, which the function may convert
                    plan = _Run(self._name, self._function, found, self._values, pattern).plan()
            except NeedsNumberError as need:
                self._values = self._values | {need.place}
                continue
            if pattern is None and plan.writes:
                pattern = found.pattern(plan.writes)
                if pattern is not None:
                    continue
            key = found.key(self._values)
            return plan, key if pattern is None else (key, pattern)

    # --- looking inside ------------------------------------------------------------------------------------------

    @briefly
    def explain(self, *args: Any, **options: Any) -> Any:
        """How many kernels a call runs, what each does, and why they are not one. Nothing is run."""
        from fusec.fusing.report import report

        return report(self._name, self._plan(_Arguments(args, options)))

    def clear_cache(self) -> None:
        """Forget all plans; the next call traces the function again."""
        with self._lock:
            self._plans.clear()

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<fusec.fuse {self._name}>"

    def __reduce__(self) -> str | tuple[object, ...]:
        """By name, since the function is run: its own or that of the function. Raises PicklingError for neither."""
        qualname = str(getattr(self, "__qualname__", self._name))
        named = _named(self.__module__, qualname)
        if named is self:
            return qualname
        if named is self._function:
            return Fused, (self._function, self._name)
        what = f"fused function '{qualname}' is not found by this name in module '{self.__module__}'"
        raise PicklingError(f"{what}; define it at the top of a module, and keep its name")


def _named(module: str, qualname: str) -> Any:
    """What a module has under a name; None if nothing."""
    try:
        return attrgetter(qualname)(sys.modules[module])
    except (AttributeError, KeyError):
        return None


class _Arguments:
    """The arguments of a call: arrays and numbers in one list, and what is around them."""

    def __init__(self, args: tuple[Any, ...], options: Mapping[str, Any]) -> None:
        self.flat: list[Any] = []
        self.kinds: list[Any] = []
        self.is_traced = False
        self.around = (tuple(map(self._taken, args)), {name: self._taken(each) for name, each in options.items()})

    def _taken(self, given: Any) -> Any:
        """What stands for an argument: _At for what is traced."""
        kind = type(given)
        if isinstance(given, np.ndarray):
            if kind is not np.ndarray:
                given = host_array(given, f"argument {len(self.flat)}", "fuse").view(np.ndarray)
            self.kinds += [(given.dtype, given.shape, given.strides)]
        elif kind in (int, float, complex):
            self.kinds += [(kind,)]
        elif isinstance(given, np.generic) and given.dtype.kind in "iufcb":
            self.kinds += [(given.dtype,)]
        elif kind in (tuple, list):
            return _Nest(kind, tuple(map(self._taken, given)))
        elif kind is dict:
            return _Nest(dict, tuple((name, self._taken(each)) for name, each in given.items()))
        else:
            self.is_traced |= isinstance(given, (Tracer, Namespace))
            if isinstance(given, Tracer):
                return _Static(given)
            if hasattr(given, "__dlpack__") or hasattr(given, "__cuda_array_interface__"):
                what = f"an array of {kind.__module__.partition('.')[0]} cannot be fused"
                raise NotTraceable(what, "pass np.asarray(x): fused functions take NumPy arrays").at()
            return _Static(given)
        self.flat.append(given)
        return _At(len(self.flat) - 1)

    def key(self, values: frozenset[int]) -> Any:
        """What the plan depends on."""
        plain = self.around[1] or not all(isinstance(each, _At) for each in self.around[0])
        found: list[Any] = []
        for at, kind in enumerate(self.kinds):
            found += kind if len(kind) != 1 or kind[0] is not float or at in values else (float,)
            if at in values:
                found.append(("value", repr(self.flat[at])))
        if plain:
            found.append((self.around[0], tuple(self.around[1].items())))
        return (*found,)

    def pattern(self, writes: Sequence[int]) -> Any:
        """Which arguments share memory with others, if those that are written do; None if they do not."""
        arrays = [(at, each) for at, each in enumerate(self.flat) if isinstance(each, np.ndarray) and each.ndim + 1]
        groups: dict[int, int] = {}
        written = set(writes)
        found = False
        for number, (at, each) in enumerate(arrays):
            groups[at] = at
            for other, before in arrays[:number]:
                if np.may_share_memory(each, before) and (at in written or other in written or groups[other] != other):
                    groups[at] = groups[other]
                    found = True
        if not found:
            return None
        offsets = tuple(
            each.__array_interface__["data"][0] - self.flat[groups[at]].__array_interface__["data"][0]
            if groups[at] != at else 0
            for at, each in arrays
        )  # fmt: skip
        return (tuple(groups.items()), offsets)


@dataclass(frozen=True)
class _At:
    """An array or number by its place."""

    place: int


@dataclass(frozen=True)
class _Nest:
    """A tuple, list or dictionary."""

    kind: Any
    items: tuple[Any, ...]


class _Static:
    """Anything else, which the function gets as it is."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Static) or type(self.value) is not type(other.value):
            return False
        return self.value is other.value or bool(self.value == other.value)

    def __hash__(self) -> int:
        try:
            return hash((type(self.value), self.value))
        except TypeError:
            return hash(type(self.value))


class _Run:
    """One run of the function on tracers."""

    def __init__(
        self, name: str, function: Callable[..., Any], found: _Arguments, values: frozenset[int], pattern: Any
    ) -> None:
        self.trace, self.function, self.found, self.values = Trace(name), function, found, values
        self.groups = dict(pattern[0]) if pattern is not None else {}
        self.arguments: dict[int, Tracer] = {}
        self.order: tuple[int, ...] = ()  # places of buffers that are returned as they are, if that is all
        self.is_tuple = False

    def plan(self) -> Plan:
        """Trace, and schedule what was traced."""
        args, options = self.found.around
        result = self.function(*map(self._given, args), **{name: self._given(each) for name, each in options.items()})
        self.trace.finish()
        needed: list[Buffer] = []
        rebuilt = self._returned(result, needed)
        self.is_tuple = type(result) is tuple
        parts = result if type(result) is tuple else (result,)
        if all(isinstance(each, Tracer) and each.is_whole() for each in parts):
            self.order = tuple(buffer.place for buffer in needed)
        self.trace.finish()
        builder = Builder(self.trace, needed)
        steps = builder.steps()
        writes = tuple(memory.buffer.place for memory in self.trace.written if memory.buffer is not None)
        notes = tuple(dict.fromkeys(self.trace.notes))
        arrays = [at for at, each in enumerate(self.found.flat) if isinstance(each, np.ndarray)]
        pairs = tuple((written, at) for written in writes for at in arrays if at != written)
        return Plan(tuple(steps), builder.size, rebuilt, writes, notes, pairs, self._quick(steps, writes))

    def _quick(self, steps: Sequence[KernelStep], writes: Sequence[int]) -> Callable[..., Any] | None:
        """The one kernel, if it takes the arguments as they are and gives what the function returns."""
        if len(steps) != 1 or writes or self.order != steps[0].makes[0] or not self.order:
            return None
        (step,) = steps
        if not step.is_plain(len(self.found.flat)) or (len(self.order) > 1) != self.is_tuple:
            return None
        return step.kernel if isinstance(step.kernel, MapKernel) else None

    def _given(self, around: Any) -> Any:
        match around:
            case _At(place):
                return self._argument(place)
            case _Nest(kind, items):
                if kind is dict:
                    return {name: self._given(each) for name, each in items}
                return kind(map(self._given, items))
            case _:
                return Namespace(self.trace) if around.value is np else around.value

    def _argument(self, place: int) -> Any:
        given = self.found.flat[place]
        if isinstance(given, np.ndarray):
            if place not in self.arguments:
                dtype = dtype_of(given, f"argument {place}", self.trace.name)
                group = self.groups.get(place, place)
                same = self.arguments.get(group)
                if same is not None and geometry(same._seen) == geometry(given):
                    return same
                if same is not None:
                    self.trace.shared.add(group)
                memory = self.trace.argument(place, given, dtype, group)
                self.arguments[place] = Tracer(self.trace, memory, (), given)
            return self.arguments[place]
        if place in self.values:
            return given
        kind: PythonType | DType
        if type(given) in PYTHON_TYPES:
            kind = PYTHON_TYPES[type(given)]
        else:
            found = dtypes.from_numpy(given.dtype)
            if found is None:
                raise NotTraceable(f"a number of dtype {given.dtype} cannot be fused", "convert it to float64").at()
            kind = found
        return tracers.made(self.trace, self.trace.number(place, kind), True)

    # --- what is returned ----------------------------------------------------------------------------------------

    def _returned(self, result: Any, needed: list[Buffer]) -> Result:
        """From a call's arrays to what the function returns."""
        if isinstance(result, Tracer):
            return self._array(result, needed)
        if type(result) in (tuple, list):
            kind, parts = type(result), [self._returned(each, needed) for each in result]
            return lambda args, held: kind([part(args, held) for part in parts])
        if isinstance(result, tuple) and hasattr(result, "_fields"):
            named, parts = type(result), [self._returned(each, needed) for each in result]
            return lambda args, held: named(*[part(args, held) for part in parts])
        if type(result) is dict:
            pairs = [(name, self._returned(each, needed)) for name, each in result.items()]
            return lambda args, held: {name: part(args, held) for name, part in pairs}
        return lambda *_: result

    def _array(self, result: Tracer, needed: list[Buffer]) -> Result:
        memory, value = result._memory, result._memory.value
        weak: type | None = None
        if value is not None and not memory.is_argument:
            if isinstance(value.kind, PythonType):
                weak = {"bool": bool, "int": int, "float": float, "complex": complex}[value.kind.name]
            leaf = self.trace.leaves.get(value.expr) if isinstance(value.expr, Input) else None
            if leaf is not None and leaf.number is not None and leaf.number[0] == "argument" and not result._steps:
                place: int = leaf.number[1]  # type: ignore[assignment]
                return lambda args, _: args[place]
        buffer = memory.buffer if memory.is_argument else self.trace.settle(memory)
        assert buffer is not None, "results have memory"
        if buffer.kind == "temporary":
            needed.append(buffer)
        fetch: Fetch = viewed(buffer, result._steps)
        if weak is not None:
            return lambda args, held: weak(fetch(args, held)[()])
        if result._is_scalar:
            return lambda args, held: fetch(args, held)[()]
        return fetch


@overload
def fuse(function: Callable[..., Any], /, *, name: str = "", kernel_name: str = "") -> Fused: ...
@overload
def fuse(
    function: None = None, /, *, name: str = "", kernel_name: str = ""
) -> Callable[[Callable[..., Any]], Fused]: ...


def fuse(
    function: Callable[..., Any] | None = None, /, *, name: str = "", kernel_name: str = "", **unknown: object
) -> Fused | Callable[[Callable[..., Any]], Fused]:
    """Make a function of NumPy arrays run as few kernels; a decorator, bare or with options.

    The function is called once for every kind of call (dtypes, shapes, strides) with objects that note what is done
    with them; results are those of the function itself. It may use operators, ufuncs, reductions, views, assignments
    and NumPy's functions that docs/fuse.md lists; branches on values of arrays are refused. name: of the kernels;
    kernel_name: the same, as CuPy calls it. Raises FusecTypeError for what cannot be traced, with the line.
    """
    for keyword in unknown:
        cure = "fusec.fuse takes name= and kernel_name="
        if keyword == "fp":
            cure = (
                'fused functions give the bits of fp="strict"; ElementwiseKernel and ReductionKernel take other modes'
            )
        raise NotTraceable(f"fusec.fuse takes no keyword {keyword!r}", cure).at()

    def decorate(decorated: Callable[..., Any]) -> Fused:
        return Fused(decorated, name or kernel_name or getattr(decorated, "__name__", "fused"))

    return decorate if function is None else decorate(function)


__all__ = ["Fused", "fuse", "literal"]
