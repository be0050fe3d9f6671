"""The first calls of a kind on the CPU are interpreted, while their kernels are compiled in the background.

The interpreter gives the bits of compiled code, and takes a few milliseconds where the compiler takes tens of them. So
it answers calls with few elements whose code is neither in memory nor in the disk cache, until the code is there. What
it computes lies aside until all of it is there: a call that is interrupted has written nothing.
"""

from __future__ import annotations

import operator
import time
from array import array
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import repeat
from math import prod
from typing import Any

import numpy as np

from fusec.arguments.operands import Array
from fusec.arguments.scalars import encode
from fusec.base import background, locks
from fusec.base.records import replace
from fusec.base.rounding_mode import default_rounding
from fusec.compiler import pipeline
from fusec.dispatch.call import NO_DEVICE, KernelCall, KernelWithPlans
from fusec.dispatch.host import HOST
from fusec.dispatch.plan import new_arrays
from fusec.dispatch.spec import Bound, Given
from fusec.dispatch.waiting import Waiting
from fusec.environment import debug, settings

MOST_ELEMENTS = 1 << 14  # of any array, and of the walk
MOST_SECONDS = 0.015  # that a call may take, as far as is known before
PATIENCE = 0.06  # seconds that calls of one kind may take, before the next one waits for the compiler


def is_on() -> bool:
    """Whether first calls are interpreted: unless FUSEC_TIERS=0 says no, or the compiler is watched."""
    return settings.value_of("FUSEC_TIERS") is not False and not debug.is_wanted(1)


def answered(kernel: KernelWithPlans, call: KernelCall[Array]) -> Sequence[Array] | None:
    """The outputs of a call that the interpreter answers; None for one that compiled code does.

    Raises what binding the call, and what its numbers, raise.
    """
    if kernel.fp != "strict" or kernel.checks or kernel.writes_inputs or not _is_small(call):
        return None
    key = call.key(HOST)
    if key in kernel.plans[HOST] or not is_on():
        return None
    waiting = kernel.waiting.get(key)
    if waiting is not None:
        background.go_on()
        return _found(kernel, call, waiting)
    call.plan = HOST.again(kernel, call.given(HOST))
    if call.plan is not None:
        return None
    with background.stepping_back():
        waiting = _begun(kernel, call, key)
        return None if waiting is None else _found(kernel, call, waiting)


def begin(kernel: KernelWithPlans, call: KernelCall[Array], seen: set[object]) -> None:
    """Have the kernels of a call compiled in the background, beside others, unless it is answered without them.

    The call itself waits for them, or compiles them if no thread has begun to. seen: the kinds of earlier calls, to
    which this one is added.
    """
    key = call.key(HOST)
    if (kernel, key) in seen:
        return
    seen.add((kernel, key))
    if kernel.checks or key in kernel.plans[HOST] or kernel.waiting.get(key) is not None or not is_on():
        return
    given = call.given(HOST)
    bound = HOST.bound(kernel, given)
    if bound.is_empty or HOST.is_compiled(kernel, bound):
        return
    if kernel.fp == "strict" and _is_small(call) and prod(bound.shape) <= MOST_ELEMENTS and _is_quick(kernel, bound):
        return
    made = Waiting(None, partial(_prepare, kernel, given, key))
    if kernel.waiting.keep(key, made) is made and made.submit():
        background.hurry()


def _found(kernel: KernelWithPlans, call: KernelCall[Array], waiting: Waiting) -> Sequence[Array] | None:
    """The outputs of a call of a known kind; None if the interpreter has answered enough of them."""
    if waiting.is_over or waiting.seconds > PATIENCE or waiting.bound is None:
        return None
    kernel.remember(waiting.bound)
    values = {name: _number(each, name, call, waiting.bound) for name, each in call.values.items()}
    started = time.perf_counter()
    try:
        return _outputs(kernel, call, waiting.bound, values)
    except Exception:  # the compiled kernel may do better
        waiting.seconds = PATIENCE + 1
        return None
    finally:
        waiting.seconds += time.perf_counter() - started


def _is_small(call: KernelCall[Array]) -> bool:
    arrays = call.sources if call.outputs is None else [*call.sources, *call.outputs]
    return all(each.size <= MOST_ELEMENTS for each in arrays)


def _is_quick(kernel: KernelWithPlans, bound: Bound) -> bool:
    """Whether the interpreter answers a call, judged by the time that it would take."""
    try:
        return kernel.kind.effort(kernel, bound) <= MOST_SECONDS
    except Exception:  # the compiler says what is wrong
        return False


def _begun(kernel: KernelWithPlans, call: KernelCall[Array], key: object) -> Waiting | None:
    """The record of a kind of call whose kernels the background compiles now; None if calls wait for the compiler."""
    settings.check()
    given = call.given(HOST)
    bound = HOST.bound(kernel, given)
    if prod(bound.shape) > MOST_ELEMENTS or bound.is_empty or not bound.launches:
        return None
    with locks.lock, default_rounding():
        if HOST.is_compiled(kernel, bound):
            call.bound = bound
            return None
        if sum(each.seconds for each in kernel.waiting.values()) > PATIENCE:  # of all kinds, which may share their code
            return None
        if call.outputs is not None:  # results are computed in arrays of their own
            bound = HOST.bound(kernel, replace(call, outputs=_copies(call.outputs)).given(HOST))
        if not _is_quick(kernel, bound):
            return None
    made = Waiting(bound, partial(_prepare, kernel, given, key))
    waiting = kernel.waiting.keep(key, made)
    return waiting if waiting is not made or made.submit() else None


def _prepare(kernel: KernelWithPlans, given: Given, key: object) -> None:
    """Compile, in the background."""
    pipeline.load_in_steps()
    kernel.plans[HOST].keep(key, HOST.plan(kernel, given, NO_DEVICE))


def _copies(outputs: Sequence[Array]) -> tuple[Array, ...]:
    return tuple([np.array(each, order="K", subok=False) for each in outputs])


def _number(value: object, name: str, call: KernelCall[Array], bound: Bound) -> Any:
    """A number as the kernel gets it. Raises what is raised for one that does not fit."""
    dtype = bound.types[name]
    raw = array("q", encode(value, dtype, name, call.kernel.name)).tobytes()
    return np.frombuffer(raw, dtype.numpy, 1)[0]


@default_rounding()
def _outputs(
    kernel: KernelWithPlans, call: KernelCall[Array], bound: Bound, values: Mapping[str, object]
) -> Sequence[Array]:
    """All outputs: new ones, or those that were given, once everything is computed."""
    if call.outputs is None:
        made = tuple([HOST.allocate(call, new)[1] for new in new_arrays(kernel, bound, frozenset(bound.types))])
    else:
        made = _copies(call.outputs)
    with np.errstate(all="ignore"):
        interpret(kernel, bound, call, made, values)
    if call.outputs is None:
        return made
    store: Any = operator.setitem
    deque(map(store, call.outputs, repeat(...), made), 0)  # nothing interrupts it
    return call.outputs


def interpret(
    kernel: Any, bound: Bound, call: KernelCall[Array], made: Sequence[Array], values: Mapping[str, object]
) -> None:
    """Compute the outputs of a call, some of which has elements, in arrays that lie as `bound` says."""
    flat = [
        each if param.raw or param.name in kernel.elements else each.reshape(bound.kept)
        for param, each in zip(kernel.out_params, made, strict=True)
    ]
    kernel.kind.interpret(kernel, bound, call.arrays(flat), values)
