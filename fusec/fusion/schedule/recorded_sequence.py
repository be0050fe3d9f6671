"""Sequences of kernels for calls of other extents: what they are built of in a recorded run.

The builder of sequences runs with symbols in place of extents (see `fusec.base.recorded`). So a call of other extents
gets the words of its sequence from straight-line code: nothing is bound, planned or arranged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fusec.arguments.layouts import View
from fusec.base import dtypes
from fusec.base.kernel_abi import strides_in_order
from fusec.base.recorded import NotRecordedError, is_symbol
from fusec.dispatch.host import HOST
from fusec.dispatch.overlap import ArrayArgument, disturbed, is_staged
from fusec.dispatch.plan import CompiledLaunch, Plan
from fusec.dispatch.spec import Given
from fusec.fusion.functions.matrix_products import uncopied
from fusec.fusion.memory.calls import CallStep
from fusec.fusion.memory.slots import Fresh, SlotView
from fusec.fusion.schedule.native_sequence import NotNative, Pointer
from fusec.fusion.schedule.plan import KernelStep
from fusec.fusion.trace.array_forms import ArrayForm, form_of
from fusec.runtime.cpu.products import BlasProduct

APART = 1 << 44  # bytes between the arrays of a recorded run, which are larger than all there are


class RecordedSource:
    """The source of a recorded run. forms: arrays that are no views, by slot; views: the others; plans: those of the
    recorded call, by step.
    """

    def __init__(
        self, memory: tuple[int | None, int, Sequence[Any]], forms: Mapping[int, ArrayForm],
        views: Mapping[int, SlotView], plans: Mapping[int, Plan[Any]],
    ) -> None:  # fmt: skip
        self.arena_slot, self.arena_bytes, self.own = memory
        self.plans = {**plans}
        self._forms, self._views = forms, views
        self._bases: dict[int, int] = {}

    def is_array(self, slot: int) -> bool:
        """Whether a slot holds an array."""
        return slot in self._forms or slot in self._views

    def pointer(self, slot: int) -> Pointer:
        """Where the array of a slot begins."""
        view = self._views.get(slot)
        return (slot, 0) if view is None else (view.slot, view.offset)

    def launches(self, number: int, step: KernelStep) -> Sequence[CompiledLaunch[Any]]:
        """The kernels of a step. Raises NotNative."""
        kernel, known = step.kernel, self.plans[number]
        params = zip(kernel.params, (*step.inputs, *step.outputs), strict=True)
        arrays = {param.name: self._array(slot) for param, slot in params if self.is_array(slot)}
        inputs = {param.name: arrays[param.name] for param in kernel.in_params if param.name in arrays}
        numbers = frozenset([param.name for param in kernel.in_params if param.name not in inputs])
        given = Given(inputs, numbers, tuple([arrays[each.name] for each in kernel.out_params]), None, step.options)
        self._check_apart(step, arrays)
        bound = HOST.bound(kernel, given)
        if bound.chain or bound.is_empty or len(bound.launches) != len(known.steps):
            raise NotNative("it differs from the call before")
        return HOST.arranged(kernel, bound, known).steps

    def fresh_again(self, known: Fresh) -> Fresh:
        """A result with the extents that it has here."""
        return Fresh(known.slot, self._forms[known.slot].shape, known.dtype, known.order)

    def product(self, step: CallStep) -> BlasProduct:
        """A step that is a product. Raises NotNative."""
        a, b, made = [self._form(slot) for slot in (*step.inputs, *step.outputs)]
        found = None if step.product is None else step.product.planned(a, b, made, uncopied.__wrapped__)
        if found is None:
            raise NotNative("BLAS does not compute it")
        return found

    def _check_apart(self, step: KernelStep, arrays: Mapping[str, View]) -> None:
        """Results must not lie where operands do, which only views of one array can. Raises NotNative."""
        kernel = step.kernel
        read, written = ([self.pointer(slot)[0] for slot in each] for each in (step.inputs, step.outputs))
        if len({*written}) == len(written) and not {*written} & {*read}:
            return
        given = [ArrayArgument(each.name, arrays[each.name], each.raw) for each in kernel.params if each.name in arrays]
        known = {each.name: each for each in given}
        inputs, outputs = ([known[each.name] for each in params if each.name in known]
                           for params in (kernel.in_params, kernel.out_params))  # fmt: skip
        is_aside = kernel.kind.overlap == "stage outputs" and is_staged(inputs, outputs, kernel.in_place)
        if is_aside or disturbed(kernel, [known.get(each.name) for each in kernel.params]):
            raise NotNative("results lie where operands do")

    def _array(self, slot: int) -> View:
        """An array as memory."""
        found, (base, _) = self._form(slot), self.pointer(slot)
        dtype = dtypes.from_numpy(found.dtype)
        assert dtype is not None, "a kernel takes it"
        start = self._bases.setdefault(base, (1 + len(self._bases)) * APART)
        return View(start + found.start, found.shape, found.strides, dtype)

    def _form(self, slot: int) -> ArrayForm:
        view = self._views.get(slot)
        if view is None:
            return self._forms[slot]
        return ArrayForm(view.offset, view.shape, view.strides, view.dtype)


def recorded_source(template: Any, forms: Sequence[Any], worked: Any, plans: Mapping[int, Plan[Any]]) -> RecordedSource:
    """The source of the calls of a template. forms: of arguments; worked: the numbers of a call. Raises
    NotRecordedError.
    """
    own = template.own_of(worked)
    known = {slot: each for slot, each in enumerate(forms) if each is not None}
    for at, each in enumerate(own, 1):
        if is_symbol(each) and isinstance(each.now, np.ndarray):
            raise NotRecordedError  # an array that calls make of extents
        if isinstance(each, np.ndarray):
            known[-at] = form_of(each)
    for at, made in template.made.items():
        for (fresh, _), shape in zip(made, worked[3][at], strict=True):
            known[fresh.slot] = _dense(shape, fresh.dtype)
    for at, first in template.calls.items():
        arrays = dict(zip(template.results, worked[5], strict=True))
        for number, slot in enumerate(template.steps[at].outputs, first):
            known[slot] = arrays[number]
    views = dict(zip(template.views, worked[0], strict=True))
    return RecordedSource((template.arena_slot, worked[2], own[::-1]), known, views, plans)


def _dense(shape: tuple[int, ...], dtype: Any) -> ArrayForm:
    return ArrayForm(0, shape, strides_in_order(shape, range(len(shape)), dtype.itemsize), dtype)
