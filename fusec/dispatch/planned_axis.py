"""A reduction or a scan as its users call it: a specification with a plan for every kind of call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Unpack

from fusec.arguments.containers import Door, adopted
from fusec.arguments.layouts import Shape
from fusec.arguments.operands import is_contained, outputs_of, wrapper_of
from fusec.arguments.signature import Signature, join
from fusec.base import locks
from fusec.base.recent import Recent
from fusec.base.records import replace
from fusec.base.rounding_mode import default_rounding
from fusec.codegen import DEFAULT_TARGET, target_of
from fusec.compiler.pipeline import Source
from fusec.dispatch import host_axis
from fusec.dispatch.axis_paths import Paths, choice_of
from fusec.dispatch.axis_plan import AxisPlan
from fusec.dispatch.axis_spec import Along, Axis, AxisKind, AxisSpec, Bound
from fusec.dispatch.checked import CHECKED
from fusec.dispatch.fast_path_host import MAX_ENTRIES, Chain
from fusec.dispatch.host_axis import AxisCall
from fusec.dispatch.interception import present
from fusec.dispatch.overlap import run_aside
from fusec.dispatch.planned import hide_internal_frames, is_on_device
from fusec.dispatch.reductions import REDUCTION
from fusec.dispatch.shown import Showing, ShownKernels
from fusec.dispatch.spec import MAX_PLANS, SpecOptions
from fusec.environment import debug
from fusec.errors.arguments import OutGivenTwice, WrongNumberOfArguments, WrongNumberOfOutputs
from fusec.kinds.reduction import Request

if TYPE_CHECKING:
    from fusec.base.kernel_abi import Kernel
    from fusec.dispatch.device_axis import DeviceAxisCall, DeviceAxisPlan
    from fusec.dispatch.explain import Explanation


class ShowsTotals:
    """The verb `source` of reductions."""

    def shown(self, asked: Showing) -> ShownKernels:
        """What source() shows."""
        raise NotImplementedError

    @hide_internal_frames
    def source(
        self,
        target: str = DEFAULT_TARGET,
        types: Mapping[str, object] | None = None,
        *,
        shape: Shape | None = None,
        axis: Axis = None,
        scalars: Sequence[str] = (),
    ) -> str:
        """The text of all kernels for a target: CUDA C by default; `fusec compile --help` lists the targets.

        types: placeholder, or parameter of a function -> dtype. shape: of contiguous arguments, a million elements in a
        row if not given; it decides on the kernels. axis: as in a call. scalars: parameters to pass by value. Without
        any of these, what the last call ran is shown. Raises FusecTypeError if types are missing.
        """
        target_of(target)
        return self.shown(Showing(target, types, scalars, shape, axis)).text(target)


class AxisKernel(AxisSpec):
    """A kernel along axes, with a plan for every kind of call."""

    native_objection = ""  # why none of its calls gets a native entry

    device_plans: Recent[object, DeviceAxisPlan]

    def __init__(
        self, definition: Source, signature: Signature, kind: AxisKind = REDUCTION, **options: Unpack[SpecOptions]
    ) -> None:
        super().__init__(definition, signature, kind, **options)
        self._plans: Recent[object, AxisPlan] = Recent(MAX_PLANS)
        self._settled: Recent[object, bool] = Recent(MAX_PLANS)  # keys of calls that get no entry any more
        self.share(Paths())

    def share(self, paths: Paths) -> None:
        """Take fast paths, which other kernels may share."""
        self.paths, self.quick = paths, paths.quick

    def check_counts(self, args: tuple[object, ...], out: object) -> None:
        """Raise an error for a wrong number of arguments or outputs."""
        if len(args) not in (self.nin, self.nargs):
            raise WrongNumberOfArguments(
                self.name, self.nin, self.nargs, len(args), join(self.in_params), join(self.out_params)
            ).at()
        if out is not None:
            if len(args) != self.nin:
                raise OutGivenTwice(self.name).at()
            count = len(outputs_of(out))
            if count != self.nout:
                raise WrongNumberOfOutputs(self.name, self.nout, count, join(self.out_params)).at()

    # --- running -----------------------------------------------------------------------------------------------------

    def run(self, args: tuple[object, ...], out: object, along: Along, stream: object = None) -> tuple[object, ...]:
        """Run a call; all outputs, those of the arguments' shape in their container."""
        if not self.kind.keeps_shape or not any(map(is_contained, args)):
            return self._run(args, out, along, stream)

        def call(inputs: tuple[object, ...], outputs: tuple[object, ...]) -> tuple[object, ...]:
            return self._run(inputs, outputs or None, along, stream)

        door = Door(self.name, [param.name for param in self.in_params], self.nout, call, elementwise=False)
        return adopted(door, args[: self.nin], args[self.nin :] or outputs_of(out))

    def _run(self, args: tuple[object, ...], out: object, along: Along, stream: object) -> tuple[object, ...]:
        """Run a call, on the device of its arrays if one of them is on one; all outputs."""
        interceptor = present()
        if interceptor is not None:
            return interceptor.along_axes(self, args, out, along)
        given = args[self.nin :] if out is None else outputs_of(out)
        if is_on_device(args, out, along.where):
            return self._run_on_device(args[: self.nin], given, along, stream)
        call = host_axis.read(self, args, out, along)
        if self.checks:
            self._check(self.plan(call).bound, args, along, None)
        asked = call.outputs
        if asked is not None and host_axis.is_disturbed(self, call):
            pairs = zip(self.out_params, asked, strict=True)
            aside = [host_axis.new_output(self, param, each.shape, each.dtype, zeroed=False) for param, each in pairs]
            call = replace(call, outputs=aside)
            plan = self.plan(call)  # one for their strides
            run = partial(host_axis.execute, self, plan, call)
            run_aside(asked, aside, bool(plan.bound.read), host_axis.copy, run)
            return given
        outputs = host_axis.execute(self, self.plan(call), call)
        if asked is not None:
            return given
        wrap = wrapper_of(args)
        return tuple(each if wrap is None else wrap(each) for each in outputs)

    def _run_on_device(
        self, args: tuple[object, ...], given: tuple[object, ...], along: Along, stream: object
    ) -> tuple[object, ...]:
        """Enqueue a call on a stream of the arrays' device; does not wait. Raises the errors of targets, too."""
        with locks.lock:
            from fusec.dispatch import device_axis
            from fusec.runtime import cuda

        call = device_axis.read(self, args, given, along, stream)
        if self.checks:
            self._check(self.device_plan(call).bound, args, along, stream)
        like = next(arg for arg in (*args, *given, along.where) if cuda.is_device_array(arg))
        if call.outputs is not None and device_axis.is_disturbed(self, call):
            made = [device_axis.new_output(like, each.shape, each, call) for each in call.outputs]
            aside = replace(call, outputs=[cuda.describe(each, call.stream) for each in made])
            plan = self.device_plan(aside)
            copy = partial(device_axis.copy, stream=call.stream)
            run_aside(given, made, bool(plan.bound.read), copy, partial(device_axis.execute, self, plan, aside, like))
            return given
        plan = self.device_plan(call)
        outputs = device_axis.execute(self, plan, call, like)
        # Outputs that start as zeros and masks are left out by the fast path.
        if stream is None and not plan.bound.read and call.mask is None and plan.steps.order:
            self._remember(args, given, call, plan)
        return given or tuple(cuda.deliver(like, each) for each in outputs)

    def _remember(
        self, args: tuple[object, ...], given: tuple[object, ...], call: DeviceAxisCall, plan: DeviceAxisPlan
    ) -> None:
        """Take the fast path in later calls like this one on a device."""
        from fusec.dispatch import fast_path_device_axis

        ready = fast_path_device_axis.cached_call(self, (*args, *given), call, plan)
        if ready is None:
            return
        choice, paths = choice_of(call.along, bool(given)), self.paths
        with locks.lock:
            found = paths.repeated.get(choice)
            if found is None:
                found = fast_path_device_axis.DeviceAxisFastPath(paths.quick.get(choice) or self.following(choice))
                paths.repeated[choice] = paths.quick[choice] = found
            found.add((*args, *given), ready)

    def _check(self, bound: Bound, args: tuple[object, ...], along: Along, stream: object) -> None:
        """Look at the indices of a call before it runs. Raises IndexOutside or CannotCheck."""
        with locks.lock:
            from fusec.dispatch import checked_axis

        checked_axis.check(self, bound, args, along, stream)

    def shown(self, asked: Showing) -> ShownKernels:
        """What source() shows: the kernels of the last call, or of one with contiguous arrays."""
        from fusec.dispatch import explain_axis

        if asked.of_last and self.last is not None:
            return explain_axis.AlongAxes(self, self.last)
        return explain_axis.AlongAxes(self, explain_axis.canonical(self, asked))

    # --- plans -------------------------------------------------------------------------------------------------------

    def planned(self, args: tuple[object, ...], along: Along) -> tuple[Bound, list[Kernel]]:
        """The launches of a call, and its kernels in order; nothing is run."""
        if is_on_device(args, None, along.where):
            there = self._planned_there(args, along)
            return there.bound, [step.module.kernel for step in there.steps.order]
        here = self.plan(host_axis.read(self, args, None, along))
        return here.bound, list(here.kernels)

    def _planned_there(self, args: tuple[object, ...], along: Along) -> DeviceAxisPlan:
        with locks.lock:
            from fusec.dispatch import device_axis

        return self.device_plan(device_axis.read(self, args[: self.nin], args[self.nin :], along, None))

    def explained(self, args: tuple[object, ...], along: Along) -> Explanation:
        """Report how a call with these arguments runs; nothing is run."""
        from fusec.dispatch import explain, explain_axis, fast_path_axis

        report = explain_axis.explain(self, *self.planned(args, along))
        if is_on_device(args, None, along.where):
            plan: object = self._planned_there(args, along)
            return replace(report, path=explain.ON_DEVICE, plan=explain.place_of(plan, self.device_plans.values()))
        call = host_axis.read(self, args, None, along)
        here = self.plan(call)
        reason = self.native_objection or fast_path_axis.objection(here, call)
        place = explain.place_of(here, self._plans.values())
        return replace(report, path=explain.path_of(reason), plan=place)

    def device_plan(self, call: DeviceAxisCall) -> DeviceAxisPlan:
        """The same as `plan` for arrays on a device."""
        found = self.device_plans.get(call.key)
        if found is None:
            from fusec.dispatch import device_axis

            found = self.device_plans.keep(call.key, device_axis.make_plan(self, call))
        self.last = found.bound
        return found

    def plan(self, call: AxisCall) -> AxisPlan:
        """The plan of a call, made and stored at the first call of its kind."""
        key = call.key
        found = self._plans.get(key)
        if found is None:
            found = self._plans.keep(key, host_axis.make_plan(self, call))
        else:
            self._hasten(found, call, key)
        self.last = found.bound
        return found

    @property
    def cached_codes(self) -> dict[str, str]:
        """LLVM text of all kernels by dtypes and shape, for every combination called so far."""
        found = {}
        for plan in self._plans.values():
            types = ", ".join(f"{name}: {dtype}" for name, dtype in plan.bound.types.items())
            found[f"{types}; {plan.bound.shape}"] = "\n".join(kernel.source for kernel in plan.kernels)
        return found

    # --- fast paths --------------------------------------------------------------------------------------------------

    def _looks_at_indices(self, request: Request) -> bool:
        """Whether calls of a kind are checked, and have indices to look at as far as is known."""
        return bool(self.checks) and (request not in self.checkers or self.checkers.get(request) is not None)

    def _hasten(self, plan: AxisPlan, call: AxisCall, key: object) -> None:
        """Take a fast path in calls like one that has come twice."""
        if type(call.along.axis) not in (int, NoneType) or self._settled.get(key):
            return
        if self._looks_at_indices(plan.bound.request):
            debug.show(2, f"{self.name} has no native entry: {CHECKED}")
            self._settled.keep(key, True)
            return
        with locks.lock, default_rounding():
            from fusec.dispatch import fast_path_axis

            choice = choice_of(call.along, call.outputs is not None)
            put_before = partial(fast_path_axis.put_before, self, plan, call.without_memory())
            if self._put_entry(choice, key, put_before):
                return
            several = fast_path_axis.repeat_of(self, plan, call)
            if several is not None:
                self.paths.several.keep(*several)
                self.quick.setdefault(choice, self.following(choice))

    def _put_entry(
        self,
        choice: tuple[object, bool, bool],
        key: object,
        put_before: Callable[[Callable[..., object]], Callable[..., object]],
    ) -> bool:
        """Put a native entry before what answers calls of a choice, if there may be one and there is room."""
        chains = self.paths.chains
        chain = chains.get(choice) or chains.setdefault(choice, Chain(self.following(choice), MAX_ENTRIES))
        full, own = chain.is_full, (id(self), key)  # variants may share a chain
        if own in chain or not chain.add(own, put_before, self.name):
            if own in chain or not full:
                self._settled.keep(key, True)
            return False
        if full:
            self._settled.clear()  # one that had an entry may be among them
        on_device = self.paths.repeated.get(choice)
        if on_device is None:
            self.quick[choice] = chain.front
        else:
            on_device.following = chain.front
        return True

    def following(self, choice: tuple[object, bool, bool]) -> Callable[..., object]:
        """What answers calls of a choice where nothing faster does; outputs that are given follow the inputs."""
        axis, flag, given = choice
        along = Along(axis, reverse=flag) if self.kind.keeps_shape else Along(axis, keepdims=flag)
        return partial(self._outputs, along, given)

    def _outputs(self, along: Along, given: bool, *args: object) -> object:
        if not given and self.paths.several:
            several = self.paths.several.get(host_axis.key_of(along, args))
            found = None if several is None else several.run(args)
            if found is not None:
                return found
        return self.answer(args[: self.nin], args[self.nin :] if given else None, along)

    def answer(self, args: tuple[object, ...], out: tuple[object, ...] | None, along: Along) -> object:
        """The result of a call without a fast path."""
        results = self.run(args, out, along)
        return results[0] if self.nout == 1 else results
