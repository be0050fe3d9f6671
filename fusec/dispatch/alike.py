"""The facts of calls on the host, and their plans, made of those of calls of other extents.

What binding finds for a call is a function of integers: extents, strides and addresses. It is recorded at the second
call of a kind (see `fusec.base.recorded`). Calls with the same answers to its comparisons have the same code, so only
the numbers in their plans are worked out again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fusec.arguments.layouts import View
from fusec.base.recorded import recorded
from fusec.dispatch.plan import Plan
from fusec.dispatch.spec import Bound, Given, KernelSpec
from fusec.environment import settings

MOST_ALIKE = 8  # recordings for calls of one kind
Bind = Callable[[KernelSpec, Given], Bound]


class RecordedBinding(NamedTuple):
    """What makes the facts of calls, and the plan of one of them. version: of the settings that it was made with."""

    bound_of: Callable[..., Bound | None]
    plan: Plan[Any]
    version: int


class AlikeCalls:
    """Calls of one kind. is_known: after the first one."""

    __slots__ = ("found", "is_known")

    def __init__(self) -> None:
        self.found: tuple[RecordedBinding, ...] = ()
        self.is_known = False


def _kind(given: Given) -> object:
    """What calls have in common whose facts may be made of each other's."""
    inputs = tuple([(name, view.dtype, len(view.shape)) for name, view in given.inputs.items()])
    outputs = None if given.outputs is None else tuple([(each.dtype, len(each.shape)) for each in given.outputs])
    mask = None if given.mask is None else len(given.mask.shape)
    return inputs, given.numbers, outputs, mask, given.options.key


def _views(given: Given) -> list[View]:
    rest = () if given.mask is None else (given.mask,)
    return [*given.inputs.values(), *(given.outputs or ()), *rest]


def _integers(given: Given) -> list[int]:
    """Addresses, extents and strides of all arrays."""
    found: list[int] = []
    for view in _views(given):
        found.append(view.pointer)
        found += view.shape
        found += view.strides
    return found


def _of_integers(given: Given, integers: Sequence[Any]) -> Given:
    """The same arguments with others in their places."""
    rest = iter(integers)

    def other(view: View) -> View:
        pointer, shape = next(rest), tuple([next(rest) for _ in view.shape])
        return View(pointer, shape, tuple([next(rest) for _ in view.strides]), view.dtype)

    inputs = {name: other(view) for name, view in given.inputs.items()}
    outputs = None if given.outputs is None else tuple(map(other, given.outputs))
    return given._replace(inputs=inputs, outputs=outputs, mask=None if given.mask is None else other(given.mask))


def known_plan(kernel: KernelSpec, given: Given) -> tuple[Bound, Plan[Any]] | None:
    """The facts of a call on the host, and a plan that has its code; None if none is known."""
    alike: AlikeCalls | None = kernel.alike_on_host.get(_kind(given))
    if alike is None or not alike.found:
        return None
    integers, version = _integers(given), settings.version()
    for each in alike.found:
        if each.version == version:
            bound = each.bound_of(*integers)
            if bound is not None:
                return bound, each.plan
    return None


def keep_plan(kernel: KernelSpec, given: Given, plan: Plan[Any], bind: Bind) -> None:
    """Record how the facts of a call on the host are made, for others of its kind; of the first one nothing."""
    kind = _kind(given)
    alike: AlikeCalls = kernel.alike_on_host.get(kind) or kernel.alike_on_host.keep(kind, AlikeCalls())
    if not alike.is_known:
        alike.is_known = True
        return
    if len(plan.steps) != len(plan.bound.launches) or plan.bound.chain:
        return
    version = settings.version()
    current = [each for each in alike.found if each.version == version]
    if len(current) == MOST_ALIKE:
        return
    made = recorded(lambda integers: bind(kernel, _of_integers(given, integers)), _integers(given), plan.bound)
    if made is not None:
        alike.found = (*current, RecordedBinding(made, plan, version))
