"""A kernel that scans as calls see it: what it was made of, and the plans of the calls so far."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from fusec.arguments.containers import Door, adopted
from fusec.arguments.operands import is_contained, outputs_of
from fusec.arguments.signature import Signature
from fusec.base import locks
from fusec.base.kernel_abi import Fp
from fusec.base.recent import Recent
from fusec.base.rounding_mode import usual
from fusec.compiler.scan_pipeline import ScanDefinition
from fusec.dispatch import host_scan
from fusec.dispatch.checked import CHECKED
from fusec.dispatch.host_reduction import Call, read
from fusec.dispatch.host_scan import Bound, Plan
from fusec.dispatch.planned import MAX_PLANS, is_on_device
from fusec.dispatch.planned_reduction import Reducing
from fusec.environment import debug

if TYPE_CHECKING:
    from fusec.base.kernel_abi import Kernel
    from fusec.dispatch.device_reduction import Call as DeviceCall
    from fusec.dispatch.device_scan import Plan as DevicePlan


class Scanning(Reducing):
    """A scan with a plan for every kind of call."""

    def __init__(self, scan: ScanDefinition, signature: Signature, fp: Fp) -> None:
        super().__init__(scan.reduced, signature, fp=fp)
        self.scan = scan
        self._scan_plans: Recent[object, Plan] = Recent(MAX_PLANS)
        self._device_scan_plans: Recent[object, DevicePlan] = Recent(MAX_PLANS)
        self.last_scan: Bound | None = None  # what was called last, which source() shows

    def scan_plan(self, call: Call, reverse: bool) -> Plan:
        """The plan of a call, made at the first call of its kind and remembered."""
        key = (call.key, reverse)
        found = self._scan_plans.get(key)
        if found is None:
            found = self._scan_plans.keep(key, host_scan.make_plan(self, call, reverse))
        else:
            self._hasten_scan(found, call, reverse)
        self.last_scan = found.bound
        return found

    def _hasten_scan(self, plan: Plan, call: Call, reverse: bool) -> None:
        """Put a native entry before Python, for calls like one that has come twice."""
        key = (call.key, reverse)
        if type(call.axis) is not int or self._settled.get(key):
            return
        if self.looks_at_indices(plan.bound.request):
            debug.show(2, f"{self.name} has no native entry: {CHECKED}")
            self._settled.keep(key, True)
            return
        with locks.lock, usual():
            from fusec.dispatch import fast_path_scan

            choice = (call.axis, reverse, call.outputs is not None)
            put_before = partial(fast_path_scan.put_before, self, plan, call.without_memory())
            self.put_entry(choice, key, put_before, self.otherwise(*choice))

    def otherwise(self, axis: int | None, reverse: bool, given: bool) -> Callable[..., object]:
        """What answers calls along an axis where nothing faster does; given: the outputs follow the inputs."""
        return partial(self._scanned, axis, reverse, given)

    def _scanned(self, axis: int | None, reverse: bool, given: bool, *args: object) -> object:
        results = self.scan_all(args[: self.nin], args[self.nin :] if given else None, axis, reverse)
        return results[0] if self.nout == 1 else results

    def scan_all(
        self, args: tuple[object, ...], out: object, axis: int | None, reverse: bool, stream: object = None
    ) -> tuple[object, ...]:
        """Run a call; all outputs, in the container of the inputs."""
        if not any(map(is_contained, args)):
            return self._scan(args, out, axis, reverse, stream)

        def call(inputs: tuple[object, ...], outputs: tuple[object, ...]) -> tuple[object, ...]:
            return self._scan(inputs, outputs or None, axis, reverse, stream)

        door = Door(self.name, [param.name for param in self.in_params], self.nout, call, elementwise=False)
        return adopted(door, args[: self.nin], args[self.nin :] or outputs_of(out))

    def _scan(
        self, args: tuple[object, ...], out: object, axis: int | None, reverse: bool, stream: object
    ) -> tuple[object, ...]:
        """Run a call, on the device of its arrays if one of them is on one; all outputs."""
        if is_on_device(args, out, True):
            with locks.lock:
                from fusec.dispatch import device_scan

            if self.checks:
                from fusec.dispatch import device_reduction as reducing

                given = args[self.nin :] or outputs_of(out)
                there = reducing.read(self, args[: self.nin], given, axis, False, True, stream)
                self.check(self.device_scan_plan(there, reverse).bound, args, True, stream, axis, reverse)
            return device_scan.run(self, args, out, axis, stream, reverse=reverse)
        if self.checks:
            self.check(
                self.scan_plan(read(self, args, out, axis, False, True), reverse).bound, args, True, None, axis, reverse
            )
        return host_scan.run(self, args, out, axis, reverse=reverse)

    def device_scan_plan(self, call: DeviceCall, reverse: bool) -> DevicePlan:
        """The same for arrays on a device."""
        key = (call.key, reverse)
        found = self._device_scan_plans.get(key)
        if found is None:
            from fusec.dispatch import device_scan

            found = self._device_scan_plans.keep(key, device_scan.make_plan(self, call, reverse))
        self.last_scan = found.bound
        return found

    def scans(self, args: tuple[object, ...], axis: int | None, reverse: bool) -> tuple[Bound, list[Kernel]]:
        """What a call comes to, and its kernels in order; nothing is run."""
        if is_on_device(args, None, True):
            with locks.lock:
                from fusec.dispatch import device_reduction as reducing

            there = self.device_scan_plan(reducing.read(self, args, (), axis, False, True, None), reverse)
            return there.bound, [step.module.kernel for step in there.steps.order]
        here = self.scan_plan(read(self, args, None, axis, False, True), reverse)
        return here.bound, list(here.kernels)
