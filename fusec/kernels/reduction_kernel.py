"""Reductions that a user defines in text: ReductionKernel, CuPy's, with several outputs and one order of operations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.arguments.operands import is_foreign, is_number
from fusec.arguments.signature import Signature, Takes, join
from fusec.base import locks
from fusec.base.kernel_abi import Fp
from fusec.base.recent import Recent
from fusec.base.rounding_mode import usual
from fusec.compiler import pipeline
from fusec.compiler.reduction_pipeline import ReductionDefinition, Request, Source
from fusec.dispatch import host_reduction
from fusec.dispatch.bind import Axis, plain_axis
from fusec.dispatch.checked import CHECKED, Bounds, Checks, wanted
from fusec.dispatch.fast_path_host import MAX_ENTRIES, Chain
from fusec.dispatch.host_reduction import Call, Plan
from fusec.dispatch.planned import MAX_PLANS, Planned, briefly
from fusec.environment import debug
from fusec.errors.arguments import (
    OutGivenTwice,
    UnknownKeyword,
    WrongNumberOfArguments,
    WrongNumberOfOutputs,
)
from fusec.kernels.elementwise_kernel import check_names, check_texts, parameters

if TYPE_CHECKING:
    from fusec.arguments.layouts import Shape
    from fusec.base.kernel_abi import Kernel
    from fusec.dispatch.bind import Bound
    from fusec.dispatch.checked_reduction import Found
    from fusec.dispatch.device_reduction import Call as DeviceCall
    from fusec.dispatch.device_reduction import Plan as DevicePlan
    from fusec.dispatch.explain import Explanation
    from fusec.dispatch.fast_path_device_reduction import Repeated
    from fusec.dispatch.fast_path_reduction import Repeat

INDEX_NAMES = frozenset({"_J", "_i", "_j", "_in_ind", "_out_ind"})


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


class ReductionKernel(Reducing):
    """A kernel that combines the elements along some axes of its broadcast arguments to one total each.

    in_params, out_params: declarations ``[raw] TYPE NAME`` separated by commas, as for ElementwiseKernel. map_expr: the
    value of one element; it may use ``_J``, its position among those of its total, and the coordinates
    ``_in_ind.get()[d]`` and ``_out_ind.get()[d]``. reduce_expr: the combination of ``a`` and ``b``, which must be
    associative and commutative; the order is fixed by shape and strides, so that results are reproducible to the bit.
    post_map_expr: assigns the outputs from ``a``. identity: what a total of no elements is, and what elements that
    ``where=`` leaves out count as; None if there is none. name: shown in messages. reduce_type: the type of ``a`` and
    ``b``, a scalar or a struct of the preamble; that of the first output if None, but float32 for float16 and bfloat16.
    preamble: device functions, macros, structs. options: as for ElementwiseKernel. fp: "strict", "contract" or "fast".
    bounds: "check" makes calls look for indices outside of raw and local arrays, as for ElementwiseKernel.
    Raises FusecError with the place in the text if a declaration or an expression is not well formed.
    """

    @briefly
    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str,
        identity: object = None,
        name: str = "reduce_kernel",
        reduce_type: str | None = None,
        reduce_dims: bool = True,
        preamble: str = "",
        options: Sequence[str] = (),
        *,
        fp: Fp = "strict",
        bounds: Bounds | None = None,
        check: Checks | None = None,
    ) -> None:
        texts = {
            "in_params": in_params, "out_params": out_params, "map_expr": map_expr, "reduce_expr": reduce_expr,
            "post_map_expr": post_map_expr, "preamble": preamble, "name": name,
        }  # fmt: skip
        check_texts(name, texts if reduce_type is None else {**texts, "reduce_type": reduce_type}, options)
        start = identity_text(identity)
        definition = ReductionDefinition(
            in_params, out_params, map_expr, reduce_expr, post_map_expr, start, name, reduce_type, preamble,
            tuple(options), number=identity_number(identity),
        )  # fmt: skip
        signature = Signature(name, parameters(in_params, "input"), parameters(out_params, "output"))
        check_names(signature)
        words = re.findall(r"[A-Za-z_]\w*", f"{map_expr} {post_map_expr} {preamble}")
        asked = INDEX_NAMES - {param.name for param in signature.params}
        super().__init__(definition, signature, uses_index=not asked.isdisjoint(words), fp=pipeline.check_fp(fp))
        definition.read()
        self.texts, self.checks = definition, wanted(bounds, check)
        self.__name__ = name
        self.identity, self.reduce_type, self.reduce_dims = start, reduce_type, reduce_dims
        self.__doc__ = f"{self.signature}\n\n{map_expr.strip()}; {reduce_expr.strip()}; {post_map_expr.strip()}"

    @briefly
    def __call__(self, *args: object, **kwargs: Any) -> object:
        """Reduce; returns the output, or a tuple of several.

        args: the inputs, or inputs and outputs. axis: None for all, an integer or a tuple. keepdims: reduced axes stay
        with one element. out: the output array, or a tuple of them. where: a bool array of elements that take part.
        stream: for arrays on a GPU.
        """
        if self.quick and kwargs.keys() <= {"axis", "keepdims", "out"}:
            axis, out = kwargs.get("axis"), kwargs.get("out")
            if axis is not None and type(axis) is not int:
                axis = plain_axis(axis)
            given = out is not None or len(args) != self.nin
            quick = self.quick.get((axis, kwargs.get("keepdims", False), given))
            if quick is not None and given:
                self.check_counts(args, out)
                return quick(*args, *outputs_of(out))
            if quick is not None:
                return quick(*args)
        return self._from_keywords(args, **kwargs)

    def _from_keywords(
        self,
        args: tuple[object, ...],
        out: object = None,
        axis: Axis = None,
        keepdims: bool = False,
        stream: object = None,
        where: object = True,
        **unknown: object,
    ) -> object:
        for keyword in unknown:
            cure = "a call takes axis=, keepdims=, out=, where= and stream=; inputs and outputs are positional"
            raise UnknownKeyword(self.name, keyword, cure).at()
        self.check_counts(args, out)
        results = self.reduce(args, out, axis, keepdims, where, stream)
        return results[0] if self.nout == 1 else results

    @briefly
    def source(
        self,
        target: str = "cuda",
        types: Mapping[str, object] | None = None,
        *,
        shape: Shape | None = None,
        axis: Axis = None,
        scalars: Sequence[str] = (),
    ) -> str:
        """The text of all kernels for a target: "cuda", "metal", "llvm", "asm" (of this machine) or "ir".

        types: placeholder -> dtype. shape: of contiguous arguments, a million elements in a row if not given; it
        decides on the kernels. axis: as in a call. scalars: parameters to pass by value. Without any of these, what the
        last call ran is shown. Raises FusecTypeError if types are missing.
        """
        from fusec.dispatch import explain_reduction

        pipeline.check_target(target)
        if types is None and shape is None and axis is None and not scalars and self.last is not None:
            return explain_reduction.text_of(self, self.last, target)
        bound = explain_reduction.canonical(
            self, types or {}, explain_reduction.SHOWN if shape is None else shape, axis, scalars
        )
        return explain_reduction.text_of(self, bound, target)

    @briefly
    def explain(self, *args: object, axis: Axis = None, keepdims: bool = False, where: object = True) -> Explanation:
        """What fusec makes of a call with these arguments: kernels, axes, order, bytes; nothing is run."""
        from fusec.dispatch import explain_reduction

        return explain_reduction.explain(self, *self.planned(args, axis, keepdims, where))

    def simulated(
        self, *args: object, axis: Axis = None, keepdims: bool = False, out: object = None, where: object = True
    ) -> object:
        """A call in the interpreter; see `fusec.simulate`."""
        from fusec.dispatch.interpret_reduction import interpreted

        self.check_counts(args, out)
        results = interpreted(self, args, out, axis, keepdims, where)
        return results[0] if self.nout == 1 else results

    def __repr__(self) -> str:
        signature = getattr(self, "signature", None)
        return f"<ReductionKernel {signature}>"

    def __reduce__(self) -> tuple[object, ...]:
        d = self.texts
        args = (
            d.in_params, d.out_params, d.map_expr, d.reduce_expr, d.post_map_expr,
            d.identity if d.number is None else d.number, d.name, d.reduce_type, self.reduce_dims, d.preamble,
            d.options,
        )  # fmt: skip
        return _restore, (type(self), args, self.fp, self.checks)


def identity_text(identity: object) -> str | None:
    """The text of an identity, None for none; a number is written as the kernel language writes it."""
    text = "" if identity is None else str(identity)
    if is_number(identity):
        text = {"nan": "NAN", "inf": "INFINITY", "-inf": "-INFINITY", "True": "true", "False": "false"}.get(text, text)
    return text if text.strip() else None


def identity_number(identity: object) -> object:
    """The identity itself if it is a number, which totals must hold; None if it is a text or there is none."""
    return identity if is_number(identity) and not isinstance(identity, str) else None


def outputs_of(out: object) -> tuple[object, ...]:
    """The outputs that out= gives: none, one, or several."""
    if out is None:
        return ()
    return tuple(out) if isinstance(out, (tuple, list)) else (out,)


def scalars_of(found: Any) -> Any:
    """New results as NumPy has them: those without axes are NumPy scalars; arrays of other libraries stay arrays."""
    if found.__class__ is tuple:
        return tuple([each[()] if each.__class__ is np.ndarray and not each.ndim else each for each in found])
    return found[()] if found.__class__ is np.ndarray and not found.ndim else found


def is_on_device(args: tuple[object, ...], out: object, where: object) -> bool:
    """Whether one of the arrays of a call is."""
    outputs = out if isinstance(out, (tuple, list)) else (out,)
    foreign = [arg for arg in (*args, *outputs, where) if is_foreign(arg)]
    if not foreign:
        return False
    with locks.lock:
        from fusec.runtime import cuda

    return any(cuda.is_device_array(arg) for arg in foreign)


def _restore(cls: type[ReductionKernel], args: tuple[object, ...], fp: Fp, checks: Checks = "") -> ReductionKernel:
    """Rebuild a pickled kernel from its texts."""
    return cls(*args, fp=fp, check=checks)  # type: ignore[arg-type]
