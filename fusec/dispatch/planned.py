"""A kernel as calls see it: its definition, its signature, and its plans so far."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack

import numpy as np

from fusec.arguments.containers import Door, adopted
from fusec.arguments.layouts import Shape
from fusec.arguments.operands import is_contained, outputs_of
from fusec.arguments.signature import Signature, join
from fusec.base import locks
from fusec.base.diagnostics import counted, shown_number
from fusec.base.kernel_abi import MAX_BLOCK
from fusec.base.recent import Recent
from fusec.base.records import replace
from fusec.codegen import DEFAULT_TARGET, target_of
from fusec.compiler.pipeline import Source
from fusec.dispatch import engine, native_entries
from fusec.dispatch.call import KernelCall, KernelWithPlans
from fusec.dispatch.copier import copier
from fusec.dispatch.elementwise import ELEMENTWISE
from fusec.dispatch.fast_path_host import Choice, FastPath, Paths, choice_of
from fusec.dispatch.host import HOST
from fusec.dispatch.interception import present
from fusec.dispatch.plan import Plan
from fusec.dispatch.shown import CallKernels, Showing, ShownKernels, canonical
from fusec.dispatch.spec import MAX_PLANS, PLAIN, Axis, CallOptions, Kind, SpecOptions, is_one_axis
from fusec.environment import debug
from fusec.errors import FusecError
from fusec.errors.arguments import (
    BadBlockSize,
    InvalidKernelName,
    OutGivenTwice,
    WrongNumberOfArguments,
    WrongNumberOfOutputs,
    unknown_keyword,
)
from fusec.errors.interpreter import explained
from fusec.errors.python import UnexpectedArgument, argument_missing
from fusec.kinds.launch import Request

if TYPE_CHECKING:
    from fusec.dispatch.explain import Explanation

CHECKED = "it is checked as it runs"

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def kernel_name(name: object, own: str) -> str:
    """The name of a kernel made of functions: the requested one, or "" and their own. Raises InvalidKernelName."""
    if not isinstance(name, str):
        raise InvalidKernelName(repr(name)).at()
    found = name or "".join(char if char.isascii() else f"u{ord(char):x}" for char in own)
    if not re.fullmatch(r"[a-zA-Z_]\w*", found, re.ASCII):
        raise InvalidKernelName(found).at()
    return found


def hide_internal_frames(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Raise errors from here: the frames of fusec below would hide the user's own (FUSEC_DEBUG=1 shows them)."""

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except (FusecError, ImportError) as error:
            found: tuple[Result] | None = composed(function, args, kwargs)
            if found is not None:
                return found[0]
            raise brief(error) from error.__cause__
        except TypeError as problem:
            misuse = misused(problem, function, args, kwargs)
            if misuse is None:
                raise
            raise misuse from None

    return call


def composed(
    function: Callable[..., object], args: Sequence[object], options: Mapping[str, object]
) -> tuple[Any] | None:
    """What a call is within a fused function, whose arrays say it, in a tuple; None if no argument is such an array."""
    pending = [*args, *options.values()]
    known = set[int]()  # containers, one of which may hold itself
    while pending:
        each = pending.pop()
        compose = getattr(type(each), "__fusec_compose__", None)
        if compose is not None:
            return compose(function, tuple(args), dict(options))  # type: ignore[no-any-return]
        if isinstance(each, (list, tuple)) and id(each) not in known:
            known.add(id(each))
            pending.extend(each)
    return None


def misused(
    problem: TypeError,
    function: Callable[..., object],
    args: Sequence[object],
    options: Mapping[str, object],
    without: Mapping[str, str] | None = None,
) -> FusecError | None:
    """The error for arguments that a public function has no parameters for; None if it was called, and then failed.

    without: see `unknown_keyword`.
    """
    if problem.__traceback__ is None or problem.__traceback__.tb_next is not None:
        return None
    import inspect  # hardly ever needed

    signature = inspect.signature(function)
    try:
        signature.bind(*args, **options)
    except TypeError:
        pass  # rather than an error of a function that it calls, whose frames are hidden
    else:
        return None
    params = signature.parameters
    name = function.__name__
    if name == "__init__":
        name = type(args[0]).__name__
    elif name.startswith("_") and args:
        name = str(getattr(args[0], "name", name.strip("_")))
    named = [each for each in params.values() if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    known = [each.name for each in named if each.name != "self"]
    unknown = [each for each in options if each not in params]
    missing = [each.name for each in named[len(args) :] if each.default is each.empty and each.name not in options]
    if unknown:
        optional = [each.name for each in named if each.default is not each.empty and each.kind != each.POSITIONAL_ONLY]
        return unknown_keyword(name, unknown[0], optional, without).at()
    if missing:
        return argument_missing(name, missing[0], known).at()
    twice = [each for each in list(params)[: len(args)] if each in options]
    if twice:
        return UnexpectedArgument.twice(name, f"'{twice[0]}'").at()
    given = len(args) - ("self" in params)
    cure = f"its parameters are: {', '.join(known)}"
    return UnexpectedArgument(name, counted(given, "argument"), cure).at()


def brief(error: FusecError | ImportError) -> FusecError | ImportError:
    """The error without the frames that it has come through, unless FUSEC_DEBUG shows them; of an import that the
    interpreter prevents, what that means.
    """
    if isinstance(error, ImportError):
        return explained(error) or error
    return error if debug.level() else error.with_traceback(None)


def block_size_of(given: object) -> int | None:
    """Threads of a block, if a call asks for a number of them; the same limits on every device. Raises BadBlockSize."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or not 0 < given <= MAX_BLOCK:
        raise BadBlockSize(shown_number(given)).at()
    return int(given)


class Shows(ABC):
    """A kernel that shows its texts."""

    @abstractmethod
    def shown(self, asked: Showing) -> ShownKernels:
        """What source() shows."""


class ShowsElements(Shows):
    """The verb `source` of element-wise kernels."""

    @hide_internal_frames
    def source(
        self, target: str = DEFAULT_TARGET, types: Mapping[str, object] | None = None, *, scalars: Sequence[str] = ()
    ) -> str:
        """The text for a target: CUDA C by default; `fusec compile --help` lists the targets.

        types: placeholder, or parameter of a function -> dtype; not needed if all are declared, nor after a call, whose
        memory layout is then shown too. scalars: parameters to pass by value, those of functions as Python floats
        unless `types` or an annotation differs. Raises FusecTypeError if types are missing.
        """
        target_of(target)
        return self.shown(Showing(target, types, scalars)).text(target)


class ShowsTotals(Shows):
    """The verb `source` of reductions."""

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


class Planned(KernelWithPlans):
    """A kernel with a plan for every kind of call; the base of all kernels of users."""

    native_objection = ""  # why none of its calls gets a native entry

    def __init__(
        self, definition: Source, signature: Signature, kind: Kind = ELEMENTWISE, **options: Unpack[SpecOptions]
    ) -> None:
        super().__init__(definition, signature, kind, **options)
        self.checkers: Recent[object, Planned | None] = Recent(MAX_PLANS)  # what looks at indices, by request
        self.share(Paths())

    def share(self, paths: Paths) -> None:
        """Take fast paths along axes, which other kernels may share."""
        self.paths, self.quick = paths, paths.quick

    @staticmethod
    @cache
    def copier() -> Planned:
        """A kernel that copies an array."""
        spec = copier()
        return Planned(spec.definition, spec.signature)

    def check_counts(self, args: tuple[object, ...], out: object) -> None:
        """Raise an error for a wrong number of arguments or outputs."""
        if len(args) not in (self.nin, self.nargs):
            raise self.wrong_number(len(args)).at()
        if out is not None:
            if len(args) != self.nin:
                raise OutGivenTwice(self.name).at()
            count = len(outputs_of(out))
            if count != self.nout:
                raise WrongNumberOfOutputs(self.name, self.nout, count, join(self.out_params)).at()

    def wrong_number(self, given: int) -> WrongNumberOfArguments:
        """The error for a wrong number of arguments."""
        return WrongNumberOfArguments(
            self.name, self.nin, self.nargs, given, join(self.in_params), join(self.out_params)
        )

    # --- running -----------------------------------------------------------------------------------------------------

    def run(self, args: tuple[object, ...], out: object = None, options: CallOptions = PLAIN) -> tuple[object, ...]:
        """Run a call, on the device of its arrays if one of them is on one; all outputs.

        Those of kernels along axes that have the arguments' shape are in their container.
        """
        kind, interceptor = self.kind, present()
        run = engine.run if interceptor is None else interceptor.call
        if not (kind.along_axes and kind.keeps_shape) or not any(map(is_contained, args)):
            return run(self, args, out, options)

        def call(inputs: tuple[object, ...], outputs: tuple[object, ...]) -> tuple[object, ...]:
            return run(self, inputs, outputs or None, options)

        door = Door(self.name, [param.name for param in self.in_params], self.nout, call, elementwise=False)
        return adopted(door, args[: self.nin], args[self.nin :] or outputs_of(out))

    # --- looking inside ----------------------------------------------------------------------------------------------

    def shown(self, asked: Showing) -> ShownKernels:
        """What source() shows: the kernels of the last call, or of one with contiguous arrays."""
        if asked.of_last and self.last is not None:
            return CallKernels(self, self.last)
        return CallKernels(self, canonical(self, asked))

    def planned(self, args: tuple[object, ...], options: CallOptions = PLAIN) -> Plan[Any]:
        """The plan of a call; nothing is run."""
        return self.plan(*engine.read_call(self, args, None, options))

    def explained(self, args: tuple[object, ...], options: CallOptions = PLAIN) -> Explanation:
        """Report how a call with these arguments runs; nothing is run."""
        with locks.lock:
            from fusec.dispatch import explain

        backend, call = engine.read_call(self, args, None, options)
        plan = self.plan(backend, call)
        report = explain.explain(self, plan.bound, plan.kernels)
        place = explain.place_of(plan, self.plans[backend].values())
        if backend is not HOST:
            threads, lines = backend.threads_of_block(plan, call), report.lines
            if not self.kind.along_axes:
                lines = (*lines, ("block", explain.block_text(threads, options.block_size)))
            return replace(report, lines=lines, path=explain.ON_DEVICE, plan=place)
        reason = self.native_objection or native_entries.objection(self, plan, call)
        if reason and not self.kind.along_axes:
            report = replace(report, lines=(*report.lines, ("no native entry", reason)))
        return replace(report, path=explain.path_of(reason), plan=place)

    @property
    def cached_codes(self) -> dict[str, str]:
        """LLVM text by dtypes, along axes also by shape, for every combination called so far."""
        found = {}
        for plan in self.plans[HOST].values():
            key = ", ".join(f"{name}: {dtype}" for name, dtype in plan.bound.types.items())
            key = f"{key}; {plan.bound.shape}" if self.kind.along_axes else key
            found[key] = "\n".join(kernel.source for kernel in plan.kernels)
        return found

    # --- fast paths --------------------------------------------------------------------------------------------------

    def fast_path(self, call: KernelCall[Any]) -> FastPath | None:
        """Where later calls like this one may be faster; None if there is no such place."""
        if not self.kind.along_axes:
            return None
        choice = choice_of(call.options, call.is_given)
        found = self.paths.of.get(choice)
        if found is None:
            install = partial(self.quick.__setitem__, choice)
            found = self.paths.of.setdefault(choice, FastPath(self.following(choice), install))
        return found

    def hasten(self, plan: Plan[Any], call: KernelCall[Any], again: bool) -> None:
        """Take a fast path in calls on the host like one that has come twice."""
        along = self.kind.along_axes
        if not call.is_on_host or (along and not (again and is_one_axis(call.options.axis))):
            return
        path = self.fast_path(call)
        if path is None:
            return
        deciding = self.deciding(call.values)
        key = (plan, *deciding.items()) if deciding else plan
        if path.entries.is_settled(key):
            return
        if self._looks_at_indices(plan.bound.request):
            debug.show(2, f"{self.name} has no native entry: {CHECKED}")
            path.entries.settle(key)
            return
        if path.hasten(plan, call, key, again) or not along:
            return
        with locks.lock:
            several = native_entries.repeat_of(self, plan, call)
            if several is not None:
                self.paths.several.keep(*several)
                self.quick.setdefault(choice_of(call.options, call.is_given), path.python)

    def repeat(self, plan: Plan[Any], call: KernelCall[Any]) -> None:
        """Take the fast path in later calls like this one on a device."""
        options, is_cleared = call.options, bool(plan.zeroed) and not call.is_given
        if plan.is_idle or is_cleared or call.mask is not None or options.size != -1 or options.block_size is not None:
            return
        from fusec.dispatch.device_plans import cached_call

        path = self.fast_path(call)
        ready = None if path is None else cached_call(plan, call)
        if path is not None and ready is not None:
            path.repeat(call.args, ready)

    def _looks_at_indices(self, request: Request) -> bool:
        """Whether calls of a kind are checked, and have indices to look at as far as is known."""
        return bool(self.checks) and (request not in self.checkers or self.checkers.get(request) is not None)

    def following(self, choice: Choice) -> Callable[..., object]:
        """What answers calls of a choice where nothing faster does; outputs that are given follow the inputs."""
        axis, flag, given = choice
        options = CallOptions(axis, reverse=flag) if self.kind.keeps_shape else CallOptions(axis, keepdims=flag)
        return partial(self._outputs, options, given)

    def _outputs(self, options: CallOptions, given: bool, *args: object) -> object:
        if not given and self.paths.several:
            several = self.paths.several.get(native_entries.key_of(options, args))
            found = None if several is None else several.run(args)
            if found is not None:
                return found
        return self.answer(args[: self.nin], args[self.nin :] if given else None, options)

    def answer(self, args: tuple[object, ...], out: tuple[object, ...] | None, options: CallOptions) -> object:
        """The result of a call without a fast path."""
        results = self.run(args, out, options)
        return results[0] if self.nout == 1 else results
