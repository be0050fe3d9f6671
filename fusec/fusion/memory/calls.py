"""Calls of a library between the kernels of a plan: NumPy computes there what no kernel does, such as products."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from fusec.arguments.operands import is_writeable
from fusec.base.records import dataclass
from fusec.base.source import Span
from fusec.dispatch.interception import present
from fusec.errors import FusecError
from fusec.fusion.functions.libraries import called_plainly, in_place
from fusec.fusion.memory.host_products import HostProduct, host_product
from fusec.fusion.memory.slots import Fresh, SlotView, fresh
from fusec.fusion.trace.numbers import picking
from fusec.fusion.trace.trace_values import Array, Buffer, Computation, Leaf, LibraryCall, outermost_first
from fusec.kernels.launches import KeptNotes
from fusec.runtime.cpu.memory import LARGE
from fusec.runtime.cpu.products import BlasProduct


class CallNote(str):
    """The note that says in an error which call has raised it."""

    name: str
    place: Span


@dataclass(eq=False)
class CallStep:
    """A call of a library with its operands and results, which are slots of a call of the plan."""

    call: LibraryCall
    leaves: list[Leaf]
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    views: tuple[tuple[int, SlotView], ...] = ()  # that it is the first to need
    stored: tuple[Computation, ...] = ()  # libraries make their results themselves
    releases: tuple[int, ...] = ()  # slots that nobody needs any more
    is_put_back: bool = False  # the next step only copies the result to the operand that the function changes

    def run(self, frame: list[Any], memory: Any) -> None:
        """Call the function on the slots of a call. Raises what the function raises."""
        for slot, view in self.views:
            frame[slot] = memory.view(frame, view)
        interceptor = present()
        if interceptor is None and self.is_put_back and memory.is_host:
            frame[self.outputs[0]] = self._changed([frame[slot] for slot in self.inputs])
            return
        if interceptor is None and self.plain is not None and memory.is_host:
            function, pick, slot, laid, buffer = self.plain
            try:
                found = function(*(operands := pick(frame)))
            except Exception as problem:
                self.note(problem)
                raise
            is_ready = _is_new(found, laid, operands)
            frame[slot] = found if is_ready else as_planned(found, buffer.phantom, operands)
            return
        operands = [frame[slot] for slot in self.inputs]
        if not memory.is_host:
            if not self.call.buffers:  # a look at values, for which devices do not wait
                return
            if interceptor is None or interceptor.runs:
                made = memory.call(self, operands)
            else:
                made = [memory.new(fresh(*each)) for each in zip(self.outputs, self.call.buffers, strict=True)]
            for slot, array in zip(self.outputs, made, strict=True):
                frame[slot] = array
            return
        if interceptor is None and self._recycled is None:
            for (slot, buffer, laid), found in zip(self._planned, self._results(operands), strict=True):
                is_ready = _is_new(found, laid, operands)
                frame[slot] = found if is_ready else as_planned(found, buffer.phantom, operands)
            return
        if interceptor is None or interceptor.runs or self.call.kernels:  # kernels are intercepted themselves
            given = [*operands, memory.new(self._recycled)] if self._recycled is not None else operands
            results = self._results(given)
        else:  # somebody only notes what would run
            results = tuple(np.zeros(each.phantom.shape, each.phantom.dtype) for each in self.call.buffers)
        for slot, buffer, found in zip(self.outputs, self.call.buffers, results, strict=True):
            frame[slot] = found if self._recycled is not None else as_planned(found, buffer.phantom, operands)
        if isinstance(interceptor, KeptNotes) and not self.call.kernels:
            interceptor.library_call(self.call.name, operands, [frame[slot] for slot in self.outputs])

    @cached_property
    def _planned(self) -> list[tuple[int, Buffer, Laid]]:
        """The slot of each result, and how it lies in memory."""
        pairs = zip(self.outputs, self.call.buffers, strict=True)
        return [(slot, each, _laid(each.phantom)) for slot, each in pairs]

    @cached_property
    def plain(self) -> tuple[Any, Any, int, Laid, Buffer] | None:
        """A function that only takes the operands, what picks these from a frame, and where its one result goes."""
        function = self.product or called_plainly(self.call.function)
        if function is None or self._recycled is not None:
            return None
        return function, picking(self.inputs), *self._planned[0][::2], self._planned[0][1]

    @cached_property
    def product(self) -> HostProduct | None:
        """What multiplies two arrays, if that is all that the call does."""
        if len(self.leaves) != 2 or len(self.outputs) != 1:
            return None
        return host_product(self.call, self.leaves, lambda *pair: self.call.function(*pair)[0], self.fresh[0])

    def native_product(self, frame: Sequence[Any]) -> BlasProduct | None:
        """How native code computes the call for the arrays of a frame, if it is a product."""
        return None if self.product is None else self.product.native(*(frame[slot] for slot in self.inputs))

    @property
    def name(self) -> str:
        """What it calls."""
        return self.call.name

    @property
    def fresh(self) -> tuple[Fresh, ...]:
        """The arrays that it makes."""
        return tuple([fresh(*each) for each in zip(self.outputs, self.call.buffers, strict=True)])

    @cached_property
    def _recycled(self) -> Fresh | None:
        """Memory that the function is given for its only result, if that is large: new pages take time."""
        is_large = self.product is None and self.call.takes_memory and self.call.buffers[0].phantom.nbytes >= LARGE
        return fresh(self.outputs[0], self.call.buffers[0]) if is_large else None

    def _results(self, operands: list[Any]) -> tuple[Any, ...]:
        try:
            return self.call.function(*operands) if self.product is None else (self.product(*operands),)
        except Exception as problem:
            self.note(problem)
            raise

    def _changed(self, operands: list[Any]) -> Array:
        """The first operand itself, changed; by way of a copy if others share its memory."""
        array, *rest = operands
        if any(isinstance(each, np.ndarray) and np.may_share_memory(array, each) for each in rest):
            array[...] = self._results(operands)[0]
            return array  # type: ignore[no-any-return]
        try:
            self.changing(*operands)  # type: ignore[misc]
        except Exception as problem:
            self.note(problem)
            raise
        return array  # type: ignore[no-any-return]

    @cached_property
    def changing(self) -> Callable[..., Any] | None:
        """What changes the first operand, if the result is a changed copy."""
        return in_place(self.call.function)

    def note(self, problem: Exception) -> None:
        """Say in an error which call has raised it."""
        place = self.call.place
        where = f"{place.file.name}, line {place.line}: {place.text.strip()}"
        note = CallNote(f"raised by {self.call.name} in {where}")
        note.name, note.place = self.call.name, place
        problem.add_note(note)

    def without_fast_path(self) -> CallStep:
        """The same step, which has none."""
        return self

    def named(self, error: FusecError, names: Sequence[str]) -> FusecError:
        """An error as it is: its operands have no names of a kernel."""
        del names
        return error

    @property
    def nbytes(self) -> int:
        """The bytes of all operands and results."""
        read = sum(each.phantom.nbytes for each in self.leaves if each.buffer is not None)
        return read + sum(each.phantom.nbytes for each in self.call.buffers)

    def __str__(self) -> str:
        read = ", ".join(_described(each.phantom) if each.buffer else "a number" for each in self.leaves)
        return f"{self.call.name} of {read}: {', '.join(_described(each.phantom) for each in self.call.buffers)}"


Laid = tuple[tuple[int, ...], tuple[int, ...], Any]
"""Strides, shape and dtype."""


def _laid(array: Array) -> Laid:
    return array.strides, array.shape, array.dtype


def _is_new(found: Any, laid: Laid, operands: Sequence[Any]) -> bool:
    """Whether a result has memory of its own, and lies there as it should."""
    if type(found) is not np.ndarray or found.base is not None or _laid(found) != laid:
        return False
    for each in operands:  # noqa: SIM110 - all() takes as long as the rest
        if each is found:
            return False
    return True


def as_planned(found: Any, wanted: Array, operands: Sequence[Any]) -> Array:
    """A result that has memory of its own, laid out as the plan says."""
    if _is_new(found, _laid(wanted), operands):
        return found  # type: ignore[no-any-return]
    array = np.asarray(found)
    assert array.shape == wanted.shape, "a library's function makes what its plan says"
    assert array.dtype == wanted.dtype, "a library's function makes what its plan says"
    if isinstance(found, np.generic):
        return array
    is_own = is_writeable(array) and not any(
        each is array or (array.base is not None and np.may_share_memory(each, array))
        for each in operands
        if isinstance(each, np.ndarray)
    )
    if is_own and (array.strides == wanted.strides or _steps(array) == _steps(wanted)):
        return array
    made = laid_out(wanted)
    made[...] = array
    return made


def laid_out(wanted: Array) -> Array:
    """A new array with the axes of one that is planned in the same order in memory."""
    axes = outermost_first(wanted)
    return np.empty([wanted.shape[axis] for axis in axes], wanted.dtype).transpose(np.argsort(axes))


def _steps(array: Array) -> list[int]:
    """The strides of axes along which there is something to step to."""
    if not array.size:
        return []
    return [stride for extent, stride in zip(array.shape, array.strides, strict=True) if extent > 1]


def _described(array: Array) -> str:
    return f"{array.dtype} {array.shape}"
