"""Kernels made of a graph with reductions: one kernel if every row fits a chunk, else one for each level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from math import prod
from typing import Any

import numpy as np

from fusec.arguments.containers import Door, adopted
from fusec.arguments.operands import is_contained, is_number, outputs_of
from fusec.arguments.scalars import flag
from fusec.arguments.signature import join
from fusec.base import locks
from fusec.base.diagnostics import counted
from fusec.base.kernel_abi import Fp
from fusec.base.public import LATER
from fusec.base.recent import Recent
from fusec.dispatch.arguments import array_of
from fusec.dispatch.axes import normalised, plain_axis
from fusec.dispatch.engine import is_on_device
from fusec.dispatch.explain import Explanation
from fusec.dispatch.interception import present
from fusec.dispatch.planned import Planned, hide_internal_frames
from fusec.dispatch.reductions import REDUCTION
from fusec.dispatch.spec import MAX_PLANS, Axis, CallOptions
from fusec.errors import FusecError
from fusec.errors.arguments import WrongNumberOfArguments
from fusec.errors.reductions import RowsTooLong
from fusec.ir.graph import KernelGraph, TotalInput
from fusec.library import graph_levels
from fusec.library.arguments import check_outputs, run
from fusec.library.graph_levels import Apart, levels_of
from fusec.library.graph_sources import ReducingSource, signature_of
from fusec.passes.lower_graph_reductions import elements_of, in_place, lower_graph_reductions

Together = Callable[..., object]  # a fused function of the inputs, and of the outputs if they are given
MAX_FUSED = 16  # functions that run the levels of one graph as one


class GraphKernel:
    """A graph with reductions as a function of arrays.

    graph: some output of it reduces; inputs have the dtypes of the graph and broadcast. fp: the floating-point mode.
    Outputs over which elements differ have the shape of the arguments, others that of the totals.
    """

    def __init__(self, graph: KernelGraph, fp: Fp = "strict") -> None:
        self.graph, self.fp, self.name = graph, fp, graph.name
        self._source = ReducingSource(graph)
        self.signature = signature_of(self._source)
        self._whole: dict[frozenset[str], Planned] = {}
        self._apart: dict[frozenset[str], Apart] = {}
        self._long: dict[object, Together | None] = {}  # calls whose rows do not fit a chunk, and what runs them again
        self._fused: Recent[object, Together] = Recent(MAX_FUSED)

    @hide_internal_frames
    def __call__(self, *args: object, out: object = None, axis: Axis = None, keepdims: bool = False) -> object:
        """Run; returns the output, or a tuple of several.

        args: arrays and numbers for the inputs. axis: what reductions reduce: None for all, an integer or a tuple.
        keepdims: reduced axes of totals stay with one element. out: an array for the output, or a tuple of them; it may
        be one of the inputs.
        """
        if out is not None:
            check_outputs(self.name, self.signature.outputs, out)
        if any(map(is_contained, args)):
            names = [param.name for param in self.signature.inputs]

            def call(inputs: tuple[object, ...], outputs: tuple[object, ...]) -> tuple[object, ...]:
                found = self._run(inputs, outputs or None, axis, keepdims)
                return (found,) if len(self.signature.outputs) == 1 else found  # type: ignore[return-value]

            door = Door(self.name, names, len(self.signature.outputs), call, elementwise=False)
            results = adopted(door, args, outputs_of(out))
            return results[0] if len(results) == 1 else results
        return self._run(args, out, axis, keepdims)

    def _run(self, args: tuple[object, ...], out: object, axis: Axis, keepdims: bool) -> object:
        axis = plain_axis(axis)
        keepdims, outputs = flag(keepdims, "keepdims", self.name), outputs_of(out)
        numbers = self._numbers(args)
        key = _kind(self.name, (*args, *outputs), (axis, keepdims)) if self._long else None
        if key is None or key not in self._long:
            results = self._in_one_kernel(args, out, axis, keepdims, numbers)
            if results is not None:
                return results[0]
            key = key or _kind(self.name, (*args, *outputs), (axis, keepdims))
        together = None
        if present() is None:
            together = self._long[key] if key in self._long else self._together(args, outputs, axis, keepdims)
        if together is not None:
            with suppress(FusecError):  # the levels one by one tell what is wrong with their arguments
                found = together(*args, *outputs)
                self._remember(key, together)
                return found if not outputs else outputs[0] if len(outputs) == 1 else outputs
        found = self._in_levels(args, outputs, axis, keepdims)
        if present() is None:
            self._remember(key, None)
        return found

    @hide_internal_frames
    def separately(self, *args: object, axis: Axis, keepdims: bool) -> object:
        """The same as a call, with levels one by one: what a fused function of them calls if it cannot trace them."""
        results = self._in_one_kernel(args, None, axis, keepdims, self._numbers(args))
        return self._in_levels(args, (), axis, keepdims) if results is None else results[0]

    def _in_one_kernel(
        self, args: tuple[object, ...], out: object, axis: Axis, keepdims: bool, numbers: frozenset[str]
    ) -> tuple[object] | None:
        """The results as a call gives them; None if rows do not fit a chunk. numbers: inputs that are numbers."""
        try:
            return (run(self.whole(numbers), args, out, axis, keepdims),)
        except FusecError as error:
            if not isinstance(error.error, RowsTooLong):
                raise
            return None

    def _in_levels(self, args: tuple[object, ...], outputs: tuple[object, ...], axis: Axis, keepdims: bool) -> object:
        """The results of levels that run one by one."""
        apart = self.apart(self._numbers(args))
        results = graph_levels.GraphCall(apart, args, axis, keepdims).run(outputs)
        return results[0] if len(results) == 1 else results

    def _remember(self, key: object, together: Together | None) -> None:
        """The rows of such calls do not fit a chunk. together: what runs them, if arrays are on a device."""
        if len(self._long) < MAX_PLANS:
            self._long[key] = together

    def _together(
        self, args: tuple[object, ...], outputs: tuple[object, ...], axis: Axis, keepdims: bool
    ) -> Together | None:
        """The levels as one fused function, whose repeated calls on a device are one sequence of launches.

        None for arrays that are not on a device, and for outputs unlike the results, to which it would convert them.
        """
        if self.fp != "strict" or not is_on_device(args) or not self._fit(args, outputs, axis, keepdims):
            return None
        known = (self._numbers(args), axis, keepdims, len(outputs))
        found = self._fused.get(known)
        return found or self._fused.keep(known, self._levels(axis, keepdims, len(outputs)))

    def _fit(self, args: tuple[object, ...], outputs: tuple[object, ...], axis: Axis, keepdims: bool) -> bool:
        """Whether outputs have the shapes and dtypes of results."""
        if not outputs:
            return True
        arrays = [array_of(each, self.name)[1] for each in args if not is_number(each)]
        shape = np.broadcast_shapes(*(each.shape for each in arrays))
        axes = normalised(self.name, axis, shape)
        kept = tuple(1 if at in axes else each for at, each in enumerate(shape) if keepdims or at not in axes)
        differ = elements_of(self.graph, self._numbers(args))
        found = [array_of(each, self.name)[1] for each in outputs]
        return all(
            each.shape == (shape if param.name in differ else kept) and param.dtype and each.dtype == param.dtype.numpy
            for param, each in zip(self.signature.outputs, found, strict=True)
        )

    def _levels(self, axis: Axis, keepdims: bool, given: int) -> Together:
        """That function."""
        count = len(self.signature.inputs)

        def levels(*arrays: Any) -> Any:
            totals: Any = self.separately(*arrays[:count], axis=axis, keepdims=keepdims)
            results = totals if isinstance(totals, tuple) else (totals,)
            for output, result in zip(arrays[count:], results, strict=False):
                output[...] = result
            return None if given else totals

        made: Together = LATER["fuse"]()(levels, name=self.name)
        return made

    def _numbers(self, args: Sequence[object]) -> frozenset[str]:
        """Inputs given as numbers. Raises WrongNumberOfArguments."""
        inputs, outputs = self.signature.inputs, self.signature.outputs
        if len(args) != len(inputs):
            count = len(inputs)
            raise WrongNumberOfArguments(self.name, count, count, len(args), join(inputs), join(outputs)).at()
        return frozenset(param.name for param, arg in zip(inputs, args, strict=True) if is_number(arg))

    def whole(self, scalars: frozenset[str]) -> Planned:
        """The single kernel for calls that pass these inputs as numbers."""
        found = self._whole.get(scalars)
        if found is None:
            found = Planned(
                self._source, self.signature, REDUCTION, elements=elements_of(self.graph, scalars),
                in_place=in_place(lower_graph_reductions(self.graph, scalars)), fp=self.fp,
                once=frozenset(each.name for each in self.graph.inputs if isinstance(each, TotalInput)),
                levels=partial(levels_of, self.graph, scalars),
            )  # fmt: skip
            with locks.lock:
                self._whole[scalars] = found
        return found

    def apart(self, scalars: frozenset[str]) -> Apart:
        """The kernels of levels for the same calls."""
        found = self._apart.get(scalars)
        if found is None:
            found = Apart(self.graph, scalars, self.fp)
            with locks.lock:
                self._apart[scalars] = found
        return found

    @hide_internal_frames
    def explain(self, *args: object, axis: Axis = None) -> Explanation:
        """The number of kernels of a call, and the reason; kernels are compiled, but not run."""
        scalars = self._numbers(args)
        whole = self.whole(scalars)
        arrays = tuple(arg if is_number(arg) else array_of(arg, self.name)[1] for arg in args)
        moved = sum(each.nbytes for each in arrays if isinstance(each, np.ndarray))
        try:
            plan = whole.planned(arrays, CallOptions(axis))
        except FusecError as error:
            if not isinstance(error.error, RowsTooLong):
                raise
            call = graph_levels.GraphCall(self.apart(scalars), arrays, axis, False)
            steps = call.steps()
            count, most = error.error.count, error.error.most
            why = f"{count:,} elements exceed a chunk of {most:,}: each level combines totals of chunks"
            moved += sum(prod(call.shape) * each.dtype.nbytes for each in self.signature.outputs if each.dtype)
        else:
            steps, walks = [(self.name, len(plan.steps))], len(lower_graph_reductions(self.graph, scalars).stages)
            why = f"{counted(plan.bound.count, 'element')} in one chunk: {counted(walks, 'pass', 'passes')}"
            why += ", all but the first from cache" * (walks > 1)
            if len(plan.steps) > 1:
                why = f"{plan.bound.count:,} elements: totals of chunks, then of these totals"
            pairs = zip(self.signature.outputs, plan.bound.shapes, strict=True)
            moved += sum(prod(shape) * each.dtype.nbytes for each, shape in pairs if each.dtype)
        lines = [("kernels", str(sum(count for _, count in steps))), ("reason", why)]
        lines += [(name, counted(count, "kernel")) for name, count in steps]
        return Explanation(str(self.signature), tuple(lines), moved)

    def __repr__(self) -> str:
        return f"<GraphKernel {self.signature}>"


def _kind(name: str, args: Sequence[object], options: tuple[Axis, bool]) -> object:
    """What the choice between one kernel, several and a fused function depends on."""
    axis, keepdims = options
    found: list[object] = [axis, keepdims]
    for arg in args:
        if not isinstance(arg, np.ndarray) and is_number(arg):
            found.append(type(arg))
            continue
        array = arg if isinstance(arg, np.ndarray) else array_of(arg, name)[1]
        found.append((array.shape, array.strides, array.dtype, type(arg)))
    return tuple(found)
