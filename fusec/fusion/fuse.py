"""fusec.fuse: a function of arrays that is traced for each kind of call and compiled into few kernels."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from operator import attrgetter
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

import numpy as np

from fusec.base import background, locks
from fusec.base.diagnostics import instance_of
from fusec.base.recent import Recent
from fusec.base.records import replace
from fusec.base.rounding_mode import default_rounding
from fusec.dispatch.interception import present
from fusec.dispatch.planned import hide_internal_frames
from fusec.errors import FusecError
from fusec.errors.arguments import OutputTooLarge, ScalarDoesNotFit
from fusec.errors.fusing import NotTraceable, TooLittleMemory
from fusec.errors.python import NotAFunction
from fusec.fusion import pickling
from fusec.fusion.arguments import CallArguments, TakenError, pattern_of
from fusec.fusion.bound import BoundFused
from fusec.fusion.functions import operations
from fusec.fusion.fused_plan import UNFIT, FusedPlan, UnfitNumberError
from fusec.fusion.memory.host_memory import NotedMemory
from fusec.fusion.memory.results import MISSED, ServedCall
from fusec.fusion.outside.constants import KnownConstants, Traced
from fusec.fusion.quick_arguments import QuickArguments
from fusec.fusion.recording import Numbers
from fusec.fusion.running import TracedRun
from fusec.fusion.trace.lines import users
from fusec.fusion.trace.trace import RECORDING, NeedsNumberError, defined
from fusec.kernels.kernel_caller import FUNCTION_VERBS, KernelCaller
from fusec.kernels.launches import KeptNotes
from fusec.kernels.public_types import FusedFunction

if TYPE_CHECKING:
    from fusec.graphs.building import Graph

MAX_PLANS = 256  # kinds of calls remembered by one function
NEVER = 1 << 30  # more calls than a plan is hastened at
FLAT = frozenset((np.ndarray, float, int))  # arguments that plans take, of a call without containers and keywords
MAX_ALIKE = 16  # plans for calls that differ only in what the function reads from outside
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
LOADED = operations.LOADED
ASYNCHRONOUS = 0x80 | 0x200  # flags of the code of coroutines and of asynchronous generators


MAKING = {  # what fusec.fuse does not take, and why
    "fp": 'fused functions give the bits of fp="strict"; ElementwiseKernel and ReductionKernel take other modes',
    "bounds": "array operations check shapes and indices when they are traced, so that nothing is left to check",
    "check": "fused functions wrap as NumPy does; evaluate and ElementwiseKernel take check=",
}
WITHOUT = {  # what calls do not take unless the function does, and what to do instead
    "stream": "stream= is for arrays on a device, and these are in host memory",
    "block_size": "a fused function runs several kernels, each with a block size of its own",
    "out": "let the function have a parameter to write to: out[...] = x + y",
    "where": "give reductions in the function where=mask, or select there: np.where(mask, x, y)",
}


def _on_values(verb: Callable[..., T]) -> Callable[..., T]:
    """The method, which takes the values of arrays that would otherwise call the function themselves."""

    @wraps(verb)
    def given(self: Any, *args: Any, **options: Any) -> T:
        try:
            return verb(self, *args, **options)
        except TakenError as taken:
            found: T = taken.call(partial(verb, self), args, options)
            return found

    return given


class Fused(KernelCaller, Traced):
    """A function of arrays; see `fusec.fuse`."""

    without = "the call computes no elements, or NumPy does"

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        functools.update_wrapper(self, function)
        for verb in FUNCTION_VERBS:  # those of a built-in function
            vars(self).pop(verb, None)
        self._function = function
        self.name = name if name.isidentifier() and name.isascii() else "fused"
        self._plans: dict[Any, list[FusedPlan]] = {}  # by kind of call, those used last first
        self._templates: Recent[Any, tuple[FusedPlan, ...]] = Recent(MAX_PLANS)  # for calls of other extents, by kind
        self._repeats: Any = None  # those of calls with arrays on a device
        self._values: frozenset[int] = frozenset()  # numbers that the function needs as such, by place
        self._numbers = Numbers()
        self._objects: frozenset[type] = frozenset()  # types of arguments whose attributes are read
        self._constants = KnownConstants()  # those among the arguments of earlier calls
        self._count = 0  # plans remembered
        self._time = 0  # plans made or found again so far
        self._lock = threading.Lock()
        self.params = parameters_of(function)
        self.document(function.__doc__)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call the function on arrays, numbers, and anything else that it takes."""
        key: tuple[Any, ...] = ()
        flat: Sequence[Any] = args
        objects: Sequence[Any] = ()
        is_plain, has_constants = not options, False
        for arg in args:
            kind = type(arg)
            if kind is np.ndarray:
                key += (arg.dtype, arg.shape, arg.strides)
            elif (kind is float or kind is int) and not self._values:
                key += (kind,)
            elif kind in self._objects:
                key += (kind,)
                objects = (*objects, arg)
            elif (known := self._constants.get(id(arg))) is not None and RECORDING.get() is None:
                key += (known[1],)
                has_constants = True
            else:
                is_plain = False
                break
        if not is_plain:
            if self._repeats is not None and (found := self._repeated(args, options)) is not MISSED:
                return found
            key, flat, objects = self._nested(args, options)
        elif objects or has_constants:
            flat = [arg for arg in args if type(arg) in FLAT]
        plans = self._plans.get(key)
        if plans is None:
            return self._general(args, options)
        plan = plans[0]
        plan.used = self._time
        if objects or plan.names is None:  # more is read than names of modules
            picked = plan.guards.read(objects)
            if picked is None:
                return self._general(args, options)
            flat = (*flat, *picked)
        else:
            for place, name, value in plan.names:
                if place.get(name, plan) is not value:
                    return self._general(args, options)
            for function, name, value in plan.functions:
                if getattr(function, name) is not value:
                    return self._general(args, options)
        try:
            if plan.quick is not None:
                return plan.quick(*flat)
            if plan.entry is not None:
                return plan.entry(*flat)
            if plan.writes and plan.may_not_fit(flat):
                return self._general(args, options)
            return plan.run(flat)
        except UNFIT:
            return self._general(args, options)
        except FusecError as error:
            if plan.bounds and isinstance(error.error, ScalarDoesNotFit):
                return self._general(args, options)
            raise self._told(plan.named(error)) from error.__cause__
        except Exception as problem:
            raise self._told(problem) from problem.__cause__

    def _nested(self, args: tuple[Any, ...], options: Mapping[str, Any]) -> tuple[Any, Sequence[Any], Sequence[Any]]:
        """The key, arrays and numbers, and objects of a call with containers, constants or keywords; None as the key of
        one that is not plain.
        """
        found = QuickArguments(self._objects, self._constants)
        if RECORDING.get() is not None or not self._plans or not found.take(args, options):
            return None, (), ()
        return found.whole(self._values), found.flat, found.objects

    @hide_internal_frames
    def _repeated(self, args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        """A call with arrays on a device that is like one before; MISSED if it is none."""
        return self._repeats.call(args, options, self._values, self._objects)

    @hide_internal_frames
    def _general(self, args: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        recording = RECORDING.get()
        if recording is not None:
            self._accept(options)
            return recording.called(self._function)(*args, **options)
        try:
            found = self._arguments(args, options)
        except TakenError as taken:
            return taken.call(self, args, options)
        plan, flat = self._plan(found)
        plan.used = self._time
        self._constants.keep(found.constants)
        try:
            result = plan.run(flat, found.side)
        except UnfitNumberError as unfit:
            plan, flat = self._plan(found, unfit.places)
            return plan.run(flat, found.side)
        except Exception as problem:
            told = users(problem) if problem is plan.problem else self._told(problem)
            if told is problem:
                raise
            raise told from problem.__cause__
        if found.side is not None and found.side.served is not None:
            self._repeats = self._repeats or found.side.repeats(self._told, self._constants)
            served = ServedCall(plan, flat, len(found.flat), found.side.served, self._values, self._objects)
            self._repeats.add(args, options, served)
        return result

    def _told(self, problem: Exception) -> Exception:
        """An error as the user sees it: of memory for a plan, with the function in place of a kernel; of libraries."""
        error: Any = problem.error if isinstance(problem, FusecError) else None
        if isinstance(error, OutputTooLarge):
            return self._too_large(f"a new array of shape {error.shape} takes {error.nbytes:,} bytes")
        if isinstance(error, ScalarDoesNotFit):
            return error.at(problem.span or defined(self._function))  # type: ignore[attr-defined]
        if hasattr(problem, "__notes__"):  # those of libraries
            return users(problem)
        return self._too_large(str(problem)) if type(problem) is MemoryError else problem

    def _too_large(self, what: str) -> Exception:
        return TooLittleMemory(self.name, what).at(defined(self._function))

    def _arguments(self, args: tuple[Any, ...], options: Mapping[str, Any]) -> CallArguments:
        """The arguments of a call, of which those on a device are used on its stream=. Raises NotTraceable."""
        if "stream" in options and "stream" not in self.params and not takes_any(self._function):
            found = self._arguments(args, {name: each for name, each in options.items() if name != "stream"})
            if found.side is None:
                self._accept(options)
            found.side.asked = options["stream"]
            return found
        self._accept(options)
        return CallArguments(args, options, self._objects, self._function)

    def _accept(self, options: Mapping[str, Any]) -> None:
        """Raise NotTraceable for an option of kernels that the function itself does not take."""
        for option in options:
            if option in WITHOUT and option not in self.params and not takes_any(self._function):
                raise NotTraceable(f"{self.name}() takes no keyword {option!r}", WITHOUT[option]).at()

    def _plan(self, found: CallArguments, known: frozenset[int] = frozenset()) -> tuple[FusedPlan, Sequence[Any]]:
        """The plan of a call, made at the first of its kind, and its arrays and numbers.

        known: the places of numbers that it is made for.
        """
        if any(place >= len(found.flat) for place in known):  # from outside: the key does not tell them apart
            return self._made(found, known)
        key = found.key(self._values | known)
        for plan in self._plans.get(key, ()):
            flat = plan.flat(found)
            if flat is not None:
                if plan is not self._plans[key][0]:
                    self._remember(key, plan)
                return plan, flat
        kind = found.kind(key)
        alike = self._templates.get(kind) or ()
        for plan in alike:
            flat = plan.flat(found)
            made = plan.resized([*map(found.outline, flat)], found.side is None) if flat is not None else None
            if made is not None and flat is not None:
                if plan is not alike[0]:  # the next call tries it first
                    self._templates[kind] = (plan, *(each for each in alike if each is not plan))
                self._remember(key, made)
                return made, flat
        with background.stepping_back():
            plan, given = self._made(found, known)
        if plan.problem is not None:
            return plan, given
        self._objects |= {type(each) for each in found.objects if not isinstance(each, CallArguments.CALLED)}
        key = found.key(self._values | known)
        self._remember(key, plan)
        kind = found.kind(key)
        if plan.template is not None and kind is not None:
            sound = [each for each in self._templates.get(kind) or () if each.template and each.template.is_sound]
            self._templates[kind] = (plan, *sound[: MAX_ALIKE - 1])
        return plan, given

    def _remember(self, key: Any, plan: FusedPlan) -> None:
        """Put a plan first among those of its kind, and forget those that were used least recently."""
        with self._lock:
            self._time += 1
            plan.used = self._time
            known = self._plans.get(key, [])
            others = [each for each in known if each is not plan]
            others.sort(key=attrgetter("used"), reverse=True)
            found = self._plans[key] = [plan, *others[: MAX_ALIKE - 1]]
            self._count += len(found) - len(known)
            if self._count > MAX_PLANS:  # forget some at once, since to find them takes long
                last = {each: max(plan.used for plan in plans) for each, plans in self._plans.items()}
                for oldest in sorted(last, key=last.__getitem__)[: max(1, len(last) // 8)]:
                    self._count -= len(self._plans.pop(oldest))

    def _traced(
        self, make: Callable[[TracedRun], T], found: CallArguments, pattern: Any = None,
        known: frozenset[int] = frozenset(),
    ) -> tuple[T, TracedRun]:  # fmt: skip
        """What is made of a trace of the function, which is traced again if it needs numbers as such.

        known: the places of some that it is traced for.
        """
        values, is_plain = (self._values & {*range(len(found.flat))}) | known, False  # not of what is read behind
        while True:
            run = TracedRun(self.name, found, values, self._numbers, pattern)
            extents = run.trace.extents
            extents.is_plain = is_plain
            try:
                with default_rounding():  # of constants, which the function may convert
                    made = make(run)
                if getattr(made, "problem", None) is None or not extents.is_given:
                    return made, run
                run.recording.restore()
                is_plain = True  # so that the function fails only for reasons of its own
            except NeedsNumberError as need:
                run.recording.restore()
                if need.place < len(found.flat):
                    values = values | {need.place}
                else:
                    self._numbers.needed.add(run.recording.paths[need.place - len(found.flat)])
            except BaseException as problem:  # a call that is refused or interrupted leaves no trace
                run.recording.restore()
                if not extents.is_given or not isinstance(problem, Exception):
                    raise
                is_plain = True

    def _made(self, found: CallArguments, known: frozenset[int] = frozenset()) -> tuple[FusedPlan, Sequence[Any]]:
        """Trace the function, again if memory turns out to be shared."""
        pattern: Any = None
        while True:
            plan, run = self._traced(TracedRun.plan, found, pattern, known)
            if plan.writes:
                shared = pattern_of([*map(found.outline, run.flat)], plan.writes)
                if shared != pattern:
                    run.recording.restore()
                    pattern = shared
                    continue
            if plan.problem is None and not known:
                self._values = self._values | run.values
            return plan, run.flat

    # --- looking inside ------------------------------------------------------------------------------------------

    @hide_internal_frames
    @_on_values
    def explain(self, *args: Any, **options: Any) -> Any:
        """The kernels of a call: their number, their work, and why they are separate. Nothing is run."""
        from fusec.dispatch.explain import place_of
        from fusec.fusion.schedule.report import report

        plan, _ = self._plan(self._arguments(args, options))
        if plan.is_resized:  # what it says of its kernels is about other extents
            plan, _ = self._made(self._arguments(args, options))
        if plan.problem is not None:
            raise plan.problem
        for call in self.noted(args, options).calls if plan.kernels else ():
            call.explained()  # compiles the kernel
        plans = [plan for each in self._plans.values() for plan in each]
        return replace(report(self.name, plan), plan=place_of(plan, plans))

    @hide_internal_frames
    @_on_values
    def graph(self, *args: Any, **options: Any) -> Graph:
        """What a call does, as a graph of arrays; nothing is run."""
        with locks.lock:
            from fusec.fusion.graphs.graph_traces import graph_of

        graph, _ = self._traced(graph_of, self._arguments(args, options))
        return graph

    def call_keywords(self) -> Sequence[str] | None:
        """The parameters of the function."""
        return None if takes_any(self._function) else self.params

    def required(self) -> Sequence[str]:
        """The parameters without defaults."""
        known = inspect.signature(self._function).parameters
        return [name for name in self.params if name in known and known[name].default is inspect.Parameter.empty]

    def called(self, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """A call whose kernels have no fast paths; one that does not run assigns nothing outside of the function."""
        interceptor = present()
        try:
            found = self._arguments(tuple(args), options)
        except TakenError as taken:
            return taken.call(lambda *given, **named: self.called(given, named), tuple(args), options)
        plan, flat = self._plan(found)
        steps = tuple(step.without_fast_path() for step in plan.steps)
        stores = plan.stores if interceptor is None or interceptor.runs else ()
        memory, side = plan.memory, found.side
        if isinstance(interceptor, KeptNotes):  # which read what arrays hold
            memory, (flat, interceptor.moved), side = NotedMemory(memory, interceptor), found.on_host(flat), None
        made = replace(plan, steps=steps, quick=None, stores=stores, memory=memory, native=None, calls=NEVER)
        return replace(made, launches=None, entry=None).run(flat, side)

    @property
    def cached_codes(self) -> dict[str, str]:
        """LLVM text by number of the kernel and dtypes, for every kind of call so far."""
        plans = [plan for each in self._plans.values() for plan in each]
        return {
            f"kernel {number}: {types}": text
            for plan in plans
            for number, step in enumerate(plan.kernels, 1)
            for types, text in step.kernel.cached_codes.items()
        }

    def described(self) -> tuple[str, str]:
        """The signature of the function, and what has become of it."""
        return (
            f"{self.name}({', '.join(self.params)})",
            "A function of arrays that is compiled into few kernels; see fusec.fuse.",
        )

    def clear_cache(self) -> None:
        """Forget all plans; the next call traces the function again."""
        with self._lock:
            for each in (self._plans, self._constants, self._templates):
                each.clear()
            self._count, self._repeats = 0, None

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else BoundFused(self, instance)

    def __repr__(self) -> str:
        return f"<fusec.fuse {self.name}>"

    def __reduce__(self) -> str | tuple[object, ...]:
        """By name, since the function is run: its own or that of the function; what has none, by its code."""
        function, qualname = self._function, str(getattr(self, "__qualname__", self.name))
        name = pickling.name_of(self, self.__module__, qualname)
        if name:
            return name
        if isinstance(function, FunctionType) and pickling.named(self.__module__, qualname) is not function:
            return _unpickled, (self.name, pickling.parts_of(function))
        return Fused, (function, self.name)


def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the parameters; none of what Python knows no signature of."""
    code = getattr(function, "__code__", None)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if isinstance(code, CodeType) else ()


def takes_any(function: Callable[..., Any]) -> bool:
    """Whether a function takes keywords that it does not name."""
    code = getattr(function, "__code__", None)
    return not isinstance(code, CodeType) or bool(code.co_flags & inspect.CO_VARKEYWORDS)


def _unpickled(name: str, parts: pickling.FunctionParts) -> Fused:
    """A fused lambda, or one of a function within another."""
    return Fused(pickling.from_parts(parts), name)


@overload
def fuse(function: np.ufunc, /, *, name: str = "", kernel_name: str = "") -> FusedFunction[..., Any]: ...
@overload
def fuse(function: Callable[P, R], /, *, name: str = "", kernel_name: str = "") -> FusedFunction[P, R]: ...
@overload
def fuse(
    function: None = None, /, *, name: str = "", kernel_name: str = ""
) -> Callable[[Callable[P, R]], FusedFunction[P, R]]: ...


def fuse(
    function: Callable[..., Any] | None = None, /, *, name: str = "", kernel_name: str = "", **unknown: object
) -> Any:
    """Compile a function of NumPy arrays into few kernels; a decorator, with or without options.

    The function is called once for every kind of call (dtypes, shapes, strides) with objects that record the
    operations; results are those of the function itself. It may use operators, ufuncs, reductions, views, assignments,
    and the NumPy functions that docs/fuse.md lists. Branches on the values of arrays are refused. name: of the kernels;
    kernel_name: CuPy's word for it. Arrays have any shape and dtype. Raises FusecTypeError, with the line, for anything
    that cannot be traced.

    >>> @fusec.fuse
    ... def centred(x):
    ...     return x - x.mean()
    >>> centred(np.array([1.0, 2.0, 6.0]))
    array([-2., -1.,  3.])
    """
    for keyword in unknown:
        cure = MAKING.get(keyword, "fusec.fuse takes name= and kernel_name=")
        raise NotTraceable(f"fusec.fuse takes no keyword {keyword!r}", cure).at()

    def decorate(decorated: Callable[..., Any]) -> Fused:
        if not callable(decorated):
            cure = "write @fusec.fuse directly above a def, or pass a function of arrays"
            raise NotAFunction(f"{instance_of(decorated)} cannot be called, so it cannot be fused", cure).at()
        if isinstance(decorated, type):
            cure = "decorate its methods, or a function that makes objects of it"
            raise NotAFunction(f"the class {decorated.__name__} is no function of arrays", cure).at()
        if getattr(getattr(decorated, "__code__", None), "co_flags", 0) & ASYNCHRONOUS:
            cure = "fuse a plain def, and call it in the async def"
            raise NotAFunction(f"{decorated.__name__} is an async def, which gives no arrays", cure).at()
        return Fused(decorated, name or kernel_name or getattr(decorated, "__name__", "fused"))

    return decorate if function is None else decorate(function)
