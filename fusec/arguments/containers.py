"""Results in the container of the arguments, by the protocols that NumPy's ufuncs follow.

Objects with a way of their own to handle ufuncs, `__array_ufunc__`, are asked first, and see what is called as a ufunc:
they align labels, strip units or masks, call it with plain arrays and label the results. Of objects that have
`__array_wrap__` alone, the one of highest `__array_priority__` makes the results. Arrays of libraries that share memory
by DLPack are no such objects: results go back to these by DLPack (`operands.wrapper_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fusec.arguments.operands import LISTS, admitted, is_foreign, is_lent, raise_for_container
from fusec.base.records import dataclass
from fusec.errors.arguments import ContainerDeclines, ContainerFails, UnsupportedDtype
from fusec.errors.base import FusecError

Values = tuple[object, ...]


@dataclass(frozen=True)
class Door:
    """A callable."""

    name: str
    params: Sequence[str]  # names of the inputs
    nout: int
    call: Callable[[Values, Values], Values]  # from inputs and given outputs, () for none, to all results
    # An element of the results comes from the elements of the arguments at its place, so that blocks of them may be
    # computed apart; else results have the shape of the arguments, but only whole arrays will do.
    elementwise: bool = True


class AsUfunc:
    """A callable as `__array_ufunc__` methods see it: a ufunc without a signature, whose name is none of NumPy's.

    results: of the whole call, where blocks cannot be computed apart.
    """

    signature = None
    identity = None

    def __init__(self, door: Door, nin: int, results: Values = ()) -> None:
        self.door, self._results = door, results
        self.nin, self.nout, self.nargs = nin, door.nout, nin + door.nout
        self.__name__ = self.__qualname__ = f"fusec.{door.name}"

    def __call__(self, *inputs: object, out: object = None) -> object:
        """The result, or a tuple of several."""
        outputs: Values = () if out is None else tuple(out) if isinstance(out, tuple) else (out,)
        results = adopted(self.door, inputs, outputs)
        return results[0] if self.nout == 1 else results

    def accumulate(self, *_: object) -> object:
        """The result for the whole call, or a tuple of several results."""
        return self._results[0] if self.nout == 1 else self._results

    def __repr__(self) -> str:
        return f"<{self.__name__}>"


def adopted(door: Door, inputs: Values, outputs: Values = ()) -> Values:
    """The results of a call in the container of its inputs, or the given outputs.

    Raises ContainerDeclines and ContainerFails where a container wants no such call, and what the call raises.
    """
    askable = _overriding(inputs) if door.nout else []
    if askable and door.elementwise:
        return _asked(door, askable, inputs, outputs)
    pairs = zip((*door.params, *("" for _ in inputs)), inputs, strict=False)
    results = door.call(tuple(admitted(value, name, door.name) for name, value in pairs), outputs)
    if outputs:
        return results
    if len(askable) == 1:  # several would be aligned by labels, which whole arrays are not
        labelled = _ask(askable[0], AsUfunc(door, len(inputs), results), "accumulate", inputs, {})
        if labelled is not None:
            return labelled
    wrap = None if len(askable) > 1 else _wrapper(door, inputs)
    return results if wrap is None else tuple(each if each is None else wrap(each) for each in results)


def _asked(door: Door, askable: Sequence[object], inputs: Values, outputs: Values) -> Values:
    """What the inputs' own `__array_ufunc__` make of a call. Raises ContainerDeclines if none wants it."""
    plain = tuple(np.asarray(each) if isinstance(each, LISTS) else each for each in inputs)
    for each in askable:
        options = {"out": outputs} if outputs else {}
        found = _ask(each, AsUfunc(door, len(inputs)), "__call__", plain, options)
        if found is not None:
            return outputs or found
    raise ContainerDeclines(door.name, type(askable[0]).__name__).at()


def _ask(
    container: object, ufunc: AsUfunc, method: str, inputs: Values, options: Mapping[str, Values]
) -> Values | None:
    """The answer of one container, None if it declines. Raises ContainerDeclines if it never answers."""
    door = ufunc.door
    ask = type(container).__array_ufunc__  # type: ignore[attr-defined]
    if ask is None:
        raise ContainerDeclines(door.name, type(container).__name__).at()
    try:
        found = ask(container, ufunc, method, *inputs, **options)
    except FusecError as error:
        if isinstance(error.error, UnsupportedDtype) and error.error.given == "object":
            raise_for_container(container, error.error.param, door.name)
        raise
    except Exception as problem:  # whatever the container raises
        if isinstance(problem, NotImplementedError) and not door.elementwise:
            return None
        if str(getattr(container, "dtype", "")) == "category":  # pandas has no arithmetic of them, even of numbers
            names = (name for name, each in zip(door.params, inputs, strict=False) if each is container)
            raise_for_container(container, next(names, ""), door.name)
        raise ContainerFails(door.name, type(container).__name__, _reason(problem)).at() from problem
    if found is NotImplemented:
        return None
    return tuple(found) if isinstance(found, tuple) and door.nout > 1 else (found,)


def overrides(value: object) -> bool:
    """Whether an object has its own way to handle ufuncs."""
    usual = np.ndarray.__array_ufunc__
    return is_foreign(value) and not is_lent(value) and getattr(type(value), "__array_ufunc__", usual) is not usual


def _overriding(values: Values) -> list[object]:
    """One object of each class with an `__array_ufunc__` of its own, subclasses before their bases."""
    found: list[object] = []
    for value in values:
        if not overrides(value):
            continue
        if any(type(each) is type(value) for each in found):
            continue
        at = next((at for at, each in enumerate(found) if issubclass(type(value), type(each))), len(found))
        found.insert(at, value)
    return found


def _wrapper(door: Door, values: Values) -> Callable[[object], object] | None:
    """The `__array_wrap__` of highest priority, the leftmost of these; None if there is none."""
    best: Any = None
    for value in values:
        if is_foreign(value) and not is_lent(value) and callable(getattr(type(value), "__array_wrap__", None)):
            priority = getattr(value, "__array_priority__", 0.0)
            if best is None or priority > getattr(best, "__array_priority__", 0.0):
                best = value
    if best is None:
        return None
    return lambda array: _wrapped(door, best, array)


def _wrapped(door: Door, container: Any, array: object) -> object:
    """An array as `__array_wrap__` makes it, which took fewer arguments once. Raises ContainerFails."""
    problem: Exception | None = None
    for further in ((None, False), (None,), ()):
        try:
            return container.__array_wrap__(array, *further)
        except TypeError as refusal:
            problem = problem or refusal
        except Exception as refusal:  # whatever the container raises
            problem = refusal
            break
    assert problem is not None, "one of the calls has failed"
    raise ContainerFails(door.name, type(container).__name__, _reason(problem)).at() from problem


def _reason(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}".splitlines()[0]
