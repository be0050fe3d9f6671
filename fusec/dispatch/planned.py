"""A kernel as calls see it: its definition, its signature, and its plans so far."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, Unpack

import numpy as np

from fusec.arguments.layouts import Shape
from fusec.arguments.operands import is_foreign
from fusec.arguments.signature import Signature, types_named
from fusec.base import locks
from fusec.base.diagnostics import counted, shown_number
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import MAX_BLOCK
from fusec.base.recent import Recent
from fusec.base.records import replace
from fusec.codegen import DEFAULT_TARGET, target_of
from fusec.compiler import pipeline
from fusec.compiler.pipeline import Source, Specialisation
from fusec.dispatch import host
from fusec.dispatch.interception import present
from fusec.dispatch.plan import ElementwiseCall, Plan
from fusec.dispatch.shown import Elements, Showing, ShownKernels
from fusec.dispatch.spec import MAX_PLANS, KernelSpec, SpecOptions
from fusec.environment import debug
from fusec.errors import FusecError
from fusec.errors.arguments import BadBlockSize, InvalidKernelName, UnknownScalar, unknown_keyword
from fusec.errors.interpreter import explained
from fusec.errors.python import UnexpectedArgument, argument_missing

if TYPE_CHECKING:
    from fusec.dispatch.explain import Explanation

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
    while pending:
        each = pending.pop()
        compose = getattr(type(each), "__fusec_compose__", None)
        if compose is not None:
            return compose(function, tuple(args), dict(options))  # type: ignore[no-any-return]
        if isinstance(each, (list, tuple)):
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

    params = inspect.signature(function).parameters
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
    cure = f"its parameters are: {', '.join(known)}"
    return UnexpectedArgument(name, counted(len(args), "argument"), cure).at()


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


def is_on_device(args: tuple[object, ...], out: object, where: object) -> bool:
    """Whether one of the arrays of a call is."""
    outputs = out if isinstance(out, (tuple, list)) else (out,)
    foreign = [arg for arg in (*args, *outputs, where) if is_foreign(arg)]
    if not foreign:
        return False
    with locks.lock:
        from fusec.runtime import cuda

    return any(cuda.is_device_array(arg) for arg in foreign)


class ShowsElements:
    """The verb `source` of element-wise kernels."""

    def shown(self, asked: Showing) -> ShownKernels:
        """What source() shows."""
        raise NotImplementedError

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


class Planned(ShowsElements, KernelSpec):
    """A kernel with a plan for every kind of call; the base of all element-wise kernels of users."""

    last: Specialisation | None

    def __init__(self, definition: Source, signature: Signature, **options: Unpack[SpecOptions]) -> None:
        super().__init__(definition, signature, **options)
        self._plans: Recent[object, Plan] = Recent(MAX_PLANS)

    def run(
        self, args: tuple[object, ...], size: int | Shape = -1, stream: object = None, block_size: int | None = None
    ) -> tuple[object, ...]:
        """Run a call, on the device of its arrays if one of them is on one; all outputs.

        size: -1 where the arrays say it. stream, block_size: for arrays on a device.
        """
        interceptor = present()
        if interceptor is not None:
            return interceptor.elementwise(self, args, size)
        if any(map(is_foreign, args)) and is_on_device(args, None, None):
            with locks.lock:
                from fusec.dispatch import device

            return device.run(self, args, size, stream, block_size)
        call = host.read(self, args, size)
        if call.given or any(param.non_const for param in self.in_params):
            host.protect(self, call)
        return tuple(host.execute(self, call, self.plan(call)))

    @staticmethod
    @cache
    def copier() -> Planned:
        """A kernel that copies an array."""
        spec = KernelSpec.copier()
        return Planned(spec.definition, spec.signature)

    def plan(self, call: ElementwiseCall) -> Plan:
        """The plan of a call, made and stored at the first call of its kind."""
        found = self._plans.get(call.key)
        again = found is not None
        if found is None:
            found = self._plans.keep(call.key, host.make_plan(self, call))
        self.hasten(found, call, again)
        self.remember(found.spec(call.numbers, self.fp))
        return found

    # --- looking inside ------------------------------------------------------------------------------------------

    def shown(self, asked: Showing) -> ShownKernels:
        """What source() shows: the definition, its types and its memory layout."""
        return Elements(self.definition, self.specialisation(asked.types, asked.scalars))

    def specialisation(self, types: Mapping[str, object] | None = None, scalars: Sequence[str] = ()) -> Specialisation:
        """What source() shows: the given types, or those of the last call."""
        if types is None and not scalars and self.last is not None:
            return self.last
        inputs = [param.name for param in self.in_params]
        for name in scalars:
            if name not in inputs:
                raise UnknownScalar(self.name, name, ", ".join(inputs)).at()
        bound = self.signature.bind_names(types_named(types))
        return pipeline.by_value(inputs, scalars, partial(self.canonical, bound))

    def canonical(self, bound: Mapping[str, DType], scalars: Sequence[str]) -> Specialisation:
        """What source() shows for these types and inputs passed by value."""
        arrays = [param for param in self.params if param.name not in scalars]
        layout = pipeline.canonical_layout(
            self.definition,
            bound,
            [param.name for param in arrays if not param.raw],
            [param.name for param in arrays if param.raw],
        )
        return Specialisation(tuple(bound.items()), frozenset(scalars), layout, self.fp)

    def explained(
        self, args: tuple[object, ...], size: int | tuple[int, ...] = -1, block_size: int | None = None
    ) -> Explanation:
        """Report how a call with these arguments runs; nothing is run. size, block_size: see `run`."""
        with locks.lock:
            from fusec.dispatch import explain

        if is_on_device(args, None, None):
            with locks.lock:
                from fusec.dispatch import device

            there, threads = device.planned(self, args, size, block_size)
            self.remember(there.spec)
            report = explain.explain(self, there.module.kernel, there.space, there.spec)
            place = explain.place_of(there, self.device_plans.values())
            lines = (*report.lines, ("block", explain.block_text(threads, block_size)))
            return replace(report, lines=lines, path=explain.ON_DEVICE, plan=place)
        call = host.read(self, args, size)
        here = self.plan(call)
        report = explain.explain(self, here.executable.kernel, here.space, here.spec(call.numbers, self.fp))
        reason = host.objection(self, here, call.numbers, self.deciding(call))
        if reason:
            report = replace(report, lines=(*report.lines, ("no native entry", reason)))
        return replace(report, path=explain.path_of(reason), plan=explain.place_of(here, self._plans.values()))

    @property
    def cached_codes(self) -> dict[str, str]:
        """LLVM text by dtypes, for every combination called so far (CuPy's property of that name)."""
        return {
            ", ".join(f"{name}: {dtype}" for name, dtype in plan.types.items()): plan.executable.kernel.source
            for plan in self._plans.values()
        }
