"""Functions of a library on traced arrays: each is one step of the plan, and small stand-ins tell what it makes."""

from __future__ import annotations

import inspect
import operator
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from fusec.arguments.operands import is_writeable, strided
from fusec.base.recorded import type_of
from fusec.base.records import dataclass, field
from fusec.errors.fusing import NotFusable
from fusec.frontends.python.types import PY_INT, PythonType
from fusec.fusion.functions.operands import operand_of
from fusec.fusion.trace import elementwise, tracer
from fusec.fusion.trace.array_forms import ArrayForm
from fusec.fusion.trace.numbers import is_extent, plain
from fusec.fusion.trace.tables import METHODS
from fusec.fusion.trace.trace import Trace, check_fits, here
from fusec.fusion.trace.trace_values import Array, Leaf, LibraryCall, leaves_of, outermost_first, phantom

ARRAYS: Any = (np.ndarray, ArrayForm)
MAX_EXTENT = 2  # of stand-ins, but for extents that must differ


class Place(NamedTuple):
    """An operand among the arguments of a function."""

    number: int


@dataclass(eq=False)
class Asked:
    """A library call while it is traced.

    examples: what each operand looks like; in the arguments, a Place stands for it. known: the function's results for
    stand-ins, by the forms of these.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    options: Mapping[str, Any]
    examples: Sequence[Any]
    known: dict[object, Any] = field(default_factory=dict)

    def made(self, values: Sequence[Any]) -> Any:
        """What the function makes of these operands."""
        return self.function(*filled(self.args, values), **filled(self.options, values))

    @cached_property
    def named(self) -> dict[str, Any]:
        """All arguments by the names of the function's parameters."""
        return inspect.signature(self.function).bind(*self.args, **self.options).arguments

    def example(self, given: Any) -> Any:
        """What an argument looks like."""
        return filled(given, self.examples)

    def instead(self, function: Callable[..., Any], *args: Any, **options: Any) -> Asked:
        """Another call of the same operands, which makes arrays of the same dtypes in the same memory order."""
        return Asked(function, args, {name: each for name, each in options.items() if each is not None}, self.examples)

    def by_stand_ins(self) -> Any:
        """What the function makes of small operands, in the shapes that large ones give."""
        small = _Sizes(self)
        forms = tuple(map(small.form, self.examples))
        found = self.known.get(forms, self)
        if found is self:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found = self.known[forms] = self._tried(small)
        results = [_enlarged(each, small) for each in parts_of_result(found)]
        return found._make(results) if hasattr(found, "_make") else rebuilt(found, results)

    def _tried(self, small: _Sizes) -> Any:
        """The result for stand-ins. Raises the error for the real operands, whose message has their shapes."""
        try:
            return self.made([small.stand_in(each) for each in self.examples])
        except (TypeError, ValueError, IndexError) as problem:
            if not isinstance(problem, np.linalg.LinAlgError):
                self.made(
                    [
                        np.broadcast_to(np.zeros((), each.dtype), each.shape) if np.ndim(each) else each
                        for each in self.examples
                    ]
                )
            raise


Outcome = Callable[[Asked], Any]
"""What a function makes: arrays without content that may be looked at, or numbers."""


@dataclass(frozen=True)
class LibraryFunction:
    """A function that NumPy runs between kernels."""

    function: Callable[..., Any]
    name: str  # as users write it
    operands: tuple[int, ...] = (0,)  # which arguments are arrays, or numbers that need not be known
    keywords: tuple[str, ...] = ()  # their names
    may_raise: bool = False  # for some values
    outcome: Outcome = Asked.by_stand_ins
    takes_out: bool = True
    follows: bool = True  # what it makes follows from the extents of its operands alone
    by_kernels: Callable[..., Any] | None = None  # what kernels make of some arguments; None for others
    on_devices: Callable[..., Any] | None = None  # the same, of arrays on devices
    takes_sizes: bool = False  # as arguments that are no operands; `outcome` looks at them by `Asked.example`

    def __call__(self, *args: Any, **options: Any) -> Any:
        """The result for traced operands, or NumPy's error."""
        out = options.pop("out", None) if self.takes_out else None
        trace = _trace_in((args, options))
        for each in (self.by_kernels, self.on_devices if trace.device != "cpu" else None):
            made = None if each is None else each(*args, **options)
            if made is not None:
                return made if out is None else _stored(self.name, made, out)
        if self.may_raise:
            keep_written(trace)
        given = _Operands(trace, self.takes_sizes)
        places = [given.taken(each) if at in self.operands else given.known(each) for at, each in enumerate(args)]
        named = {
            name: given.taken(each) if name in self.keywords else given.known(each) for name, each in options.items()
        }
        asked = Asked(self.function, tuple(places), named, given.examples)
        wanted = self.outcome(asked)
        results = [_result_of(trace, each) for each in parts_of_result(wanted)]
        function = _as_function(asked, wanted)
        trace.statements.append(
            LibraryCall(
                self.name, function,
                [each.input for each in given.leaves], tuple(each._memory.buffer for each in results),
                self.may_raise, here(), function.func is _called_plainly and _takes_memory(self.function),
                again=partial(_again, self.outcome, asked) if self.follows else None,
            )
        )  # fmt: skip
        found = wanted._make(results) if hasattr(wanted, "_make") else rebuilt(wanted, results)
        return found if out is None else _stored(self.name, found, out)


@dataclass(frozen=True)
class Changing:
    """A function that changes its first argument, as one that returns a changed copy."""

    function: Callable[..., Any]

    def __call__(self, array: Array, *rest: Any, **options: Any) -> Array:
        """The changed copy."""
        made = array.copy(order="K")
        self.function(made, *rest, **options)
        return made


def _again(outcome: Outcome, asked: Asked, seen: Sequence[Any]) -> tuple[Any, ...]:
    """What a call makes of operands of other extents; numbers are as they were, unless they are made of extents."""
    pairs = zip(asked.examples, seen, strict=True)
    examples = [new if isinstance(old, ARRAYS) or type_of(new) is int else old for old, new in pairs]
    wanted = outcome(Asked(asked.function, asked.args, asked.options, examples, asked.known))
    return tuple(_phantom_of(each) for each in parts_of_result(wanted))


def keep_written(trace: Trace) -> None:
    """Have arguments hold what was written to them so far: it stays if a call raises."""
    for memory in [each for each in trace.written if each.value is not None]:
        trace.settle(memory)


def is_call(function: Callable[..., Any]) -> bool:
    """Whether a function of the tables is a call of a library, perhaps but for some of its arguments."""
    return isinstance(getattr(function, "__wrapped__", function), LibraryFunction)


class _Operands:
    """Collects the operands of a call: views of memory, and numbers. takes_sizes: also those made of extents."""

    def __init__(self, trace: Trace, takes_sizes: bool = False) -> None:
        self.trace, self.takes_sizes = trace, takes_sizes
        self.leaves: list[Leaf] = []
        self.examples: list[Any] = []

    def taken(self, given: Any) -> Any:
        """An argument that is an array, or a list of them."""
        if isinstance(given, (list, tuple)) and any(isinstance(each, tracer.Tracer) for each in given):
            return type(given)(self.taken(each) for each in given)
        if isinstance(given, (list, tuple, np.ndarray)) and not isinstance(given, tracer.Tracer):
            given = tracer.made(self.trace, tracer._operand(self.trace, np.array(given)))
        if not isinstance(given, tracer.Tracer):
            return plain(given)
        found = operand_of(given)
        if not isinstance(found, Leaf):
            return found
        value = given._read()
        self.leaves.append(found)
        self.examples.append(elementwise.WEAK[value.kind](0) if isinstance(value.kind, PythonType) else given._seen)
        return Place(len(self.leaves) - 1)

    def known(self, given: Any) -> Any:
        """An argument that must be known while tracing."""
        if isinstance(given, tracer.Tracer):
            return given._number("an argument of a library's function")
        if self.takes_sizes and is_extent(given) and given.derived is not None and type(given.value) is int:
            number = self.trace.number(("known", given.value), PY_INT, given.derived)
            self.leaves.append(self.trace.leaves[leaves_of(number.expr)[0]])
            self.examples.append(given.value)
            return Place(len(self.leaves) - 1)
        if type(given) in (list, tuple):
            return type(given)(self.known(each) for each in given)
        return given.copy() if isinstance(given, np.ndarray) else plain(given)


def _takes_memory(function: Any) -> bool:
    """Whether a function of operands may be given memory for its result as one more argument."""
    return isinstance(function, np.ufunc) or function is np.dot


def _as_function(asked: Asked, wanted: Any) -> partial[tuple[Any, ...]]:
    """A call as a function of its operands."""
    places = [each for each in asked.args if type(each) is Place]
    rest = asked.args[len(places) :]
    known = (*rest, *asked.options.values())
    is_first = [*map(type, rest)].count(Place) == 0 and [each.number for each in places] == [*range(len(places))]
    if (
        not is_first
        or isinstance(wanted, (tuple, list))
        or any(isinstance(each, (tuple, list, dict)) for each in known)
    ):
        return partial(_called, asked.function, asked.args, asked.options)
    if known:
        return partial(_called_with, asked.function, asked.args, asked.options)
    return partial(_called_plainly, asked.function)


def _called_plainly(function: Any, *values: Any) -> tuple[Any, ...]:
    """What a function makes of some operands and nothing else."""
    return (function(*values),)


def called_plainly(function: Any) -> Callable[..., Any] | None:
    """What a call runs on its operands and nothing else; None if it does more."""
    is_plain = isinstance(function, partial) and function.func is _called_plainly
    return function.args[0] if is_plain else None


def in_place(function: Any) -> Callable[..., Any] | None:
    """A call that returns a changed copy as one that changes its first operand; None for any other call.

    It changes nothing if an index is wrong. What a floating-point error or a warning stops has been written, as NumPy
    has it.
    """
    changing = called_by(function)
    if not isinstance(changing, Changing) or not (changing.function is operator.setitem or _is_at(changing.function)):
        return None
    return partial(function.func, changing.function, *function.args[1:])


def _is_at(function: Any) -> bool:
    return isinstance(getattr(function, "__self__", None), np.ufunc)


def called_by(function: Any) -> Any:
    """The library's function that a call is one of; None for a call of kernels."""
    return function.args[0] if isinstance(function, partial) else None


def asked_of(function: Any) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """The arguments and options of a call of a library's function; a Place stands for an operand, and only the call
    knows operands that are its only arguments.
    """
    return (function.args[1], function.args[2]) if len(function.args) > 1 else ((), {})


def calls_plainly(function: Any, called: Callable[..., Any]) -> bool:
    """Whether a function calls another one with its operands and nothing else."""
    return called_plainly(function) is called


def _called_with(function: Any, args: tuple[Any, ...], options: Mapping[str, Any], *values: Any) -> tuple[Any, ...]:
    """What a function makes of some operands, in order, and what stands behind them."""
    return (function(*values, *args[len(values) :], **options),)


def _called(function: Any, args: tuple[Any, ...], options: Mapping[str, Any], *values: Any) -> tuple[Any, ...]:
    """What a function makes of some operands, one after the other."""
    return parts_of_result(function(*filled(args, values), **filled(options, values)))


def filled(given: Any, values: Sequence[Any]) -> Any:
    """Arguments with operands in their places."""
    kind = type(given)
    if kind is Place:
        return values[given.number]
    if kind is dict:
        return {name: filled(each, values) for name, each in given.items()}
    return kind(filled(each, values) for each in given) if kind in (tuple, list) else given


def parts_of_result(found: Any) -> tuple[Any, ...]:
    """The arrays of a result."""
    return tuple(found) if isinstance(found, (tuple, list)) else (found,)


def rebuilt(found: Any, parts: list[Any]) -> Any:
    """A result of other arrays."""
    return type(found)(parts) if isinstance(found, (tuple, list)) else parts[0]


def _trace_in(given: Any) -> Trace:
    """The trace of the first traced array in some arguments."""
    pending = [given]
    while pending:
        each = pending.pop()
        if isinstance(each, tracer.Tracer):
            return each._trace
        if isinstance(each, (list, tuple)):
            pending.extend(each)
        elif isinstance(each, dict):
            pending.extend(each.values())
    raise AssertionError("one of the arguments is traced")


def _result_of(trace: Trace, wanted: Any) -> Any:
    """A new array that a call of a library makes."""
    seen = _phantom_of(wanted)
    buffer = trace.temporary(seen, elementwise.known_dtype(seen.dtype))
    memory = trace.storage(buffer.phantom, buffer)
    return tracer.Tracer(trace, memory, (), buffer.phantom, not isinstance(wanted, np.ndarray))


def _phantom_of(wanted: Any) -> Any:
    """A result as an array: numbers have no axes."""
    return wanted if isinstance(wanted, ARRAYS) else phantom((), np.asarray(wanted).dtype)


def _stored(name: str, found: Any, out: Any) -> Any:
    """A result in the array given for it. Raises NumPy's errors."""
    target = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    if not isinstance(target, tracer.Tracer) or not isinstance(found, tracer.Tracer):
        cure = "make it of an argument, e.g. with np.zeros_like(x), or pass it as one"
        raise NotFusable(f"out= of {name} that is not an argument", cure).at(here())
    if not np.can_cast(found.dtype, target.dtype, "same_kind"):
        raise TypeError(
            f"Cannot cast {name} output from {found.dtype!r} to {target.dtype!r} with casting rule 'same_kind'"
        )
    check_fits("the result", found.shape, target.shape)
    target._write(found._read())
    return target


class _Sizes:
    """Small extents that stand for those of a call: in the same order, and the same where those are."""

    def __init__(self, asked: Asked) -> None:
        fixed = _fixed_in((asked.args, asked.options))
        self._pairs: list[tuple[int, int]] = []  # of extents, which may be symbols, and those that stand for them
        others: list[int] = []
        for extent in [extent for each in asked.examples for extent in _shape_of(each)]:
            if any(extent == known for known, _ in self._pairs) or any(extent == known for known in others):
                continue
            same = next((each for each in (*range(MAX_EXTENT), *fixed) if extent == each), None)
            if same is None:
                others.append(extent)
            else:
                self._pairs.append((extent, same))
        free = (each for each in range(MAX_EXTENT, 1 << 31) if each not in fixed)
        self._pairs += zip(sorted(others), free, strict=False)
        self.real = {small: extent for extent, small in self._pairs}

    def _small(self, extent: int) -> int:
        """What stands for an extent."""
        return next(small for known, small in self._pairs if known == extent)

    def form(self, example: Any) -> object:
        """The facts on which the small array depends."""
        if not _shape_of(example):
            return type(example), getattr(example, "dtype", None)
        shape = tuple([self._small(each) for each in example.shape])
        signs = tuple([(step > 0) - (step < 0) for step in example.strides])
        return example.dtype, shape, signs, outermost_first(example), is_writeable(example)

    def stand_in(self, example: Any) -> Any:
        """A small array that lies in memory as a large one does, of numbers that suit every function."""
        if not _shape_of(example):
            return np.zeros((), example.dtype) if isinstance(example, ARRAYS) else example
        shape = tuple(self._small(each) for each in example.shape)
        axes = outermost_first(example)
        is_repeated = [not step and extent > 1 for step, extent in zip(example.strides, shape, strict=True)]
        own = [1 if repeated else extent for repeated, extent in zip(is_repeated, shape, strict=True)]
        made = np.empty([own[axis] for axis in axes], example.dtype).transpose(np.argsort(axes))
        made[...] = example.dtype.kind in "fc" if example.ndim == 1 else np.eye(own[-2], own[-1])
        made = made[tuple(slice(None, None, -1 if step < 0 else 1) for step in example.strides)]
        if is_writeable(example) and any(is_repeated):  # what writes to it says that elements share memory
            return strided(made, shape, np.broadcast_to(made, shape).strides)
        return np.broadcast_to(made, shape) if any(is_repeated) else made


def _shape_of(example: Any) -> tuple[int, ...]:
    """The extents of an operand; numbers have none."""
    return example.shape if isinstance(example, ARRAYS) else np.shape(example)


def _fixed_in(given: Any) -> set[int]:
    """Extents that results may have from arguments that are no operands."""
    if isinstance(given, np.ndarray):
        return set(given.shape)
    if type(given) is int:
        return {given, given + 1}
    items = given.values() if isinstance(given, dict) else given if type(given) in (tuple, list) else ()
    return set().union(*map(_fixed_in, items))


def resized(like: Any, shape: Sequence[int]) -> Any:
    """An array of another shape that lies in memory in the same order."""
    return phantom(tuple(shape), like.dtype, outermost_first(like))


def _enlarged(found: Any, sizes: _Sizes) -> Any:
    """A result in its real shape."""
    if not isinstance(found, ARRAYS):
        return found
    return phantom(tuple(sizes.real.get(each, each) for each in found.shape), found.dtype, outermost_first(found))


METHODS["_follows"] = lambda known: type(known) is LibraryFunction and known.follows
