"""A kernel that reduces as calls see it: what it was made of, and the plans of the calls so far."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING

from fusec.arguments.operands import outputs_of
from fusec.arguments.signature import Signature, Takes, join
from fusec.base import locks
from fusec.base.kernel_abi import Fp
from fusec.base.recent import Recent
from fusec.base.rounding_mode import usual
from fusec.compiler.reduction_pipeline import Source
from fusec.dispatch import host_reduction
from fusec.dispatch.bind import Axis
from fusec.dispatch.checked import CHECKED, Checks
from fusec.dispatch.fast_path_host import MAX_ENTRIES, Chain
from fusec.dispatch.host_reduction import Call, Plan
from fusec.dispatch.planned import MAX_PLANS, Planned, is_on_device
from fusec.environment import debug
from fusec.errors.arguments import (
    OutGivenTwice,
    WrongNumberOfArguments,
    WrongNumberOfOutputs,
)
from fusec.kinds.reduction import Request

if TYPE_CHECKING:
    from fusec.base.kernel_abi import Kernel
    from fusec.dispatch.bind import Bound
    from fusec.dispatch.checked_reduction import Found
    from fusec.dispatch.device_reduction import Call as DeviceCall
    from fusec.dispatch.device_reduction import Plan as DevicePlan
    from fusec.dispatch.fast_path_device_reduction import Repeated
    from fusec.dispatch.fast_path_reduction import Repeat


class Reducing:
    """A source and a signature, with a plan for every kind of call; what all kernels that reduce are made on.

    elements: outputs that have the shape of the arguments, not of the totals. in_place: outputs and inputs that may be
    the same memory. uses_index: the source may ask for positions. fp: the floating-point mode. converts: a number's own
    type makes no difference.
    """

    converts = True
    checks: Checks = ""

    def __init__(
        self,
        definition: Source,
        signature: Signature,
        *,
        elements: frozenset[str] = frozenset(),
        in_place: frozenset[tuple[str, str]] = frozenset(),
        uses_index: bool = False,
        fp: Fp = "strict",
    ) -> None:
        self.definition, self.signature = definition, signature
        self.name = signature.name
        self.in_params, self.out_params, self.params = signature.inputs, signature.outputs, signature.params
        self.nin, self.nout, self.nargs = len(self.in_params), len(self.out_params), len(self.params)
        self.elements, self.in_place, self.uses_index, self.fp = elements, in_place, uses_index, fp
        self._plans: Recent[object, Plan] = Recent(MAX_PLANS)
        self._device_plans: Recent[object, DevicePlan] = Recent(MAX_PLANS)
        self.repeated: dict[object, Repeated] = {}  # by the keys of `quick`: its parts for arrays on a device
        self.last: Bound | None = None  # what was called last, which source() shows
        self._settled: Recent[object, bool] = Recent(MAX_PLANS)  # keys of calls that get no entry any more
        self._chains: dict[object, Chain] = {}  # by the keys of `quick`: its native entries
        self.checkers: Recent[object, Planned | None] = Recent(MAX_PLANS)  # what looks at indices, by request
        self.quick: dict[object, Callable[..., object]] = {}  # by (axis, keepdims, out is given): what is tried first
        self._several: Recent[object, Repeat] = Recent(MAX_PLANS)  # by `calls.key_of`: known calls of several kernels

    def looks_at_indices(self, request: Request) -> bool:
        """Whether calls of a kind are checked, and have indices to look at as far as is known."""
        return bool(self.checks) and (request not in self.checkers or self.checkers.get(request) is not None)

    def takes(self, name: str) -> Takes:
        """Whose numbers a call like this one may have for a parameter."""
        del name
        return "any"

    def check_counts(self, args: tuple[object, ...], out: object) -> None:
        """Raise for a number of arguments or outputs that is not the kernel's."""
        if len(args) not in (self.nin, self.nargs):
            raise WrongNumberOfArguments(
                self.name, self.nin, self.nargs, len(args), join(self.in_params), join(self.out_params)
            ).at()
        if out is not None:
            if len(args) != self.nin:
                raise OutGivenTwice(self.name).at()
            count = len(out) if isinstance(out, (tuple, list)) else 1
            if count != self.nout:
                raise WrongNumberOfOutputs(self.name, self.nout, count, join(self.out_params)).at()

    def reduce(
        self, args: tuple[object, ...], out: object, axis: Axis, keepdims: bool, where: object, stream: object = None
    ) -> tuple[object, ...]:
        """Run a call, on the device of its arrays if one of them is on one; all outputs."""
        if is_on_device(args, out, where):
            with locks.lock:
                from fusec.dispatch import device_reduction

            if self.checks:
                given = args[self.nin :] or outputs_of(out)
                there = device_reduction.read(self, args[: self.nin], given, axis, keepdims, where, stream)
                self.check(self.device_plan(there).bound, args, where, stream, axis)
            return device_reduction.run(self, args, out, axis, keepdims, where, stream)
        if self.checks:
            self.check(
                self.plan(host_reduction.read(self, args, out, axis, keepdims, where)).bound, args, where, None, axis
            )
        return host_reduction.run(self, args, out, axis, keepdims, where)

    def check(
        self, found: Found, args: tuple[object, ...], where: object, stream: object = None, axis: Axis = None,
        reverse: bool = False,
    ) -> None:  # fmt: skip
        """Look at the indices and totals of a call before it runs. Raises IndexOutside, TotalWraps or CannotCheck."""
        with locks.lock:
            from fusec.dispatch import checked_reduction

        checked_reduction.check(self, found, args, where, stream, axis, reverse)

    def planned(
        self, args: tuple[object, ...], axis: Axis, keepdims: bool, where: object
    ) -> tuple[Bound, list[Kernel]]:
        """What a call comes to, and its kernels in order; nothing is run."""
        if is_on_device(args, None, where):
            with locks.lock:
                from fusec.dispatch import device_reduction

            there = self.device_plan(device_reduction.read(self, args, (), axis, keepdims, where, None))
            return there.bound, [step.module.kernel for step in there.steps.order]
        here = self.plan(host_reduction.read(self, args, None, axis, keepdims, where))
        return here.bound, [step.executable.kernel for step in here.steps]

    def device_plan(self, call: DeviceCall) -> DevicePlan:
        """The same as `plan` for arrays on a device."""
        found = self._device_plans.get(call.key)
        if found is None:
            from fusec.dispatch import device_reduction

            found = self._device_plans.keep(call.key, device_reduction.make_plan(self, call))
        self.last = found.bound
        return found

    def plan(self, call: Call) -> Plan:
        """The plan of a call, made at the first call of its kind and remembered."""
        found = self._plans.get(call.key)
        if found is None:
            found = self._plans.keep(call.key, host_reduction.make_plan(self, call))
        else:
            self._hasten(found, call)
        self.last = found.bound
        return found

    def _hasten(self, plan: Plan, call: Call) -> None:
        """Take a short way in calls like one that has come twice."""
        if type(call.axis) not in (int, NoneType) or self._settled.get(call.key):
            return
        if self.looks_at_indices(plan.bound.request):
            debug.show(2, f"{self.name} has no native entry: {CHECKED}")
            self._settled.keep(call.key, True)
            return
        with locks.lock, usual():
            from fusec.dispatch import fast_path_reduction

            choice = (call.axis, call.keepdims, call.outputs is not None)
            put_before = partial(fast_path_reduction.put_before, self, plan, call.without_memory())
            if self.put_entry(choice, call.key, put_before, self.following(*choice)):
                return
            several = fast_path_reduction.repeat_of(self, plan, call)
            if several is not None:
                self._several.keep(*several)
                self.quick.setdefault(choice, self.following(*choice))

    def put_entry(
        self,
        choice: object,
        key: object,
        put_before: Callable[[Callable[..., object]], Callable[..., object]],
        last: Callable[..., object],
    ) -> bool:
        """Put a native entry before what answers calls of a choice, if there may be one and there is room."""
        chain = self._chains.get(choice) or self._chains.setdefault(choice, Chain(last, MAX_ENTRIES))
        full, own = chain.is_full, (id(self), key)  # variants may share a chain
        if own in chain or not chain.add(own, put_before, self.name):
            if own in chain or not full:
                self._settled.keep(key, True)
            return False
        if full:
            self._settled.clear()  # one that had an entry may be among them
        on_device = self.repeated.get(choice)
        if on_device is None:
            self.quick[choice] = chain.front
        else:
            on_device.following = chain.front
        return True

    def following(self, axis: Axis, keepdims: bool, given: bool) -> Callable[..., object]:
        """What answers calls along some axes where nothing faster does; given: the outputs follow the inputs."""
        return partial(self._outputs, axis, keepdims, given)

    def _outputs(self, axis: Axis, keepdims: bool, given: bool, *args: object) -> object:
        if self._several and not given:
            several = self._several.get(host_reduction.key_of(axis, keepdims, args))
            found = None if several is None else several.run(args)
            if found is not None:
                return found
        return self.answer(args[: self.nin], args[self.nin :] if given else None, axis, keepdims)

    def answer(self, args: tuple[object, ...], out: tuple[object, ...] | None, axis: Axis, keepdims: bool) -> object:
        """The result of a call for which there is no short way."""
        results = self.reduce(args, out, axis, keepdims, True)
        return results[0] if self.nout == 1 else results
