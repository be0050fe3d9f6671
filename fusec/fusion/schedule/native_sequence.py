"""Kernels of a plan as one executable, and what fills in its slots for a call.

A native entry (`fusec.runtime.cpu.fastcall`) does so, and makes the results; where there is none, Python does.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from math import prod
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.lib.array_utils import byte_bounds

from fusec.arguments.scalars import encode
from fusec.base import dtypes
from fusec.base.dtypes import INT64, DType
from fusec.base.kernel_abi import Layout, Slot
from fusec.base.kernel_abi import Step as Stride
from fusec.base.recorded import called, words_of
from fusec.base.records import dataclass, replace
from fusec.dispatch.call import KernelCall, read
from fusec.dispatch.engine import needs_staging
from fusec.dispatch.host import HOST
from fusec.dispatch.native_entries import MOST_BYTES
from fusec.dispatch.overlap import disturbed
from fusec.dispatch.plan import CompiledLaunch, Plan
from fusec.errors import FusecError
from fusec.fusion.memory.calls import CallStep
from fusec.fusion.memory.host_memory import HostMemory
from fusec.fusion.memory.slots import Fresh, SlotView
from fusec.fusion.schedule.plan import KernelStep
from fusec.fusion.schedule.striped import ProductPlace, in_place, spans_of
from fusec.fusion.trace.numbers import picking
from fusec.runtime.cpu import composites, fastcall
from fusec.runtime.cpu.composites import Composite, CompositeInterface, CompositePiece
from fusec.runtime.cpu.fastcall import ArgSpec, CallForm, KnownCall, KnownLayout
from fusec.runtime.cpu.products import BlasProduct, hold_slots, holding

MOST_INSIDE = 256 << 10  # bytes of temporaries that an executable keeps for its next call
ARENA = "arena"  # the name of these
REFUSED = object()
"""The answer of an entry that cannot take the arrays and numbers of a call; nothing is done."""
Pointer = tuple[int, int]  # the plan's slot of an array, and bytes from its first element


class NotNative(Exception):  # noqa: N818 - a reason
    """Why kernels of a plan must be called one by one."""


@dataclass(frozen=True)
class EntryForm:
    """What a native entry makes, and how it returns that. checks: it looks whether arrays that are written share memory
    with others, which is known for sure where it does not.
    """

    fresh: Sequence[Fresh]
    returns: Literal["outputs", "tuple", "nothing"]
    checks: bool = False


@dataclass(eq=False)
class NativeSequence:
    """Kernels of a plan as one executable, and how calls fill in its slots.

    entry: makes `fresh` of what `takes` picks from a frame; None where Python does. used: the slots that it picks.
    """

    executable: Composite
    template: array[int]
    pointers: tuple[tuple[int, int], ...]  # a slot of the executable, the plan's slot of an array
    numbers: tuple[tuple[int, int, DType, int], ...]  # likewise of a number, its dtype, which half of a complex128
    fresh: tuple[Fresh, ...]
    aligned: tuple[tuple[int, int], ...]  # arguments, and what their addresses are multiples of
    written: tuple[int, ...]  # arguments, and arrays from outside, that kernels write
    name: str
    constants: tuple[Any, ...]  # arrays whose addresses are in the template
    plans: Mapping[int, Plan[Any]]  # of kernels, by step; none where it was made of recordings

    def uses(self, slot: int | None) -> bool:
        """Whether calls give it the array of a slot."""
        return any(slot == each for _, each in self.pointers)

    @property
    def words(self) -> list[int]:
        """The description, without an area that is free."""
        assert self.executable.description is not None, "sequences have descriptions"
        return [0, *self.executable.description.words[1:]]

    def with_entry(self, frame: Sequence[Any]) -> NativeSequence:
        """The same with an entry, if there is one for arrays like those of a frame."""
        entry = self.made_entry(frame, refuse, EntryForm(self.fresh, "tuple" if self.fresh else "nothing"))
        return self if entry is None else EntrySequence(**vars(self), entry=entry, takes=picking(self.used))

    def run(self, frame: list[Any], memory: HostMemory) -> bool:
        """Run on the slots of a call; False, and nothing is done, for arrays that are not aligned or not writeable.

        Raises what a number is refused with, before anything is written.
        """
        for slot, alignment in self.aligned:
            if ADDRESS_OF(frame[slot]) % alignment:
                return False
        for slot in self.written:
            if not frame[slot].flags.writeable:
                return False
        slots = self.template[:]
        for place, slot, dtype, half in self.numbers:
            slots[place] = encode(frame[slot], dtype, f"s{slot}", self.name)[half]
        for each in self.fresh:
            frame[each.slot] = memory.new(each)
        for place, slot in self.pointers:
            slots[place] = ADDRESS_OF(frame[slot])
        self.executable.run(slots.buffer_info()[0], 1)
        return True

    # --- native entries ------------------------------------------------------------------------------------------

    @property
    def used(self) -> list[int]:
        """The slots of arrays, then those of numbers, one for each dtype that they have."""
        new = {each.slot for each in self.fresh}
        given = sorted(slot for _, slot in self.pointers if slot not in new)
        return [*given, *(slot for _, slot, _, half in self.numbers if not half)]

    def made_entry(
        self, frame: Sequence[Any], fallback: Callable[..., Any], form: EntryForm
    ) -> Callable[..., Any] | None:
        """A function of the slots in use that runs all kernels; None if there is none.

        fallback: runs the calls that it cannot take.
        """
        arrays = {slot for _, slot in self.pointers}
        arguments, places = list[ArgSpec](), list[KnownLayout | None]()
        for slot in self.used:
            if slot not in arrays:
                continue
            given = frame[slot]
            dtype = dtypes.from_numpy(given.dtype)
            if dtype is None or dtype.numpy is not given.dtype:
                return None
            changes = slot in self.written
            arguments.append(ArgSpec(f"p{slot}", dtype, changes=changes, group="", is_checked=not form.checks))
            low, high = (bound - ADDRESS_OF(given) for bound in byte_bounds(given))
            places.append(KnownLayout(given.shape, given.strides, True, 0, low, high))
        for _, slot, dtype, half in self.numbers:
            if not half:
                arguments.append(ArgSpec(f"n{slot} {dtype}", dtype, number=True))
                places.append(None)
        orders = dict[str, tuple[int, ...]]()
        for each in form.fresh:
            dtype = dtypes.from_numpy(each.dtype)
            assert dtype is not None, "results have dtypes of kernels"
            arguments.append(ArgSpec(f"p{each.slot}", dtype, output=True))
            places.append(KnownLayout(each.shape, (), True, 0, 0, 0))
            orders[f"p{each.slot}"] = each.order or tuple(range(len(each.shape)))
        known = KnownCall(self.template, 1, tuple(places), orders)
        calls = CallForm(returns=form.returns, known=known, given=False)
        found = fastcall.make(self.executable, arguments, fallback, self.name, calls)
        return None if found is fallback else found


@dataclass(eq=False)
class EntrySequence(NativeSequence):
    """The same with a native entry."""

    entry: Callable[..., Any]
    takes: Callable[[Any], tuple[Any, ...]]

    def run(self, frame: list[Any], memory: HostMemory) -> bool:
        """As before; numbers are not refused with an exception."""
        del memory
        made = self.entry(*self.takes(frame))
        if made is REFUSED:
            return False
        for each, result in zip(self.fresh, made or (), strict=True):
            frame[each.slot] = result
        return True


def refuse(*args: object) -> object:
    """What entries leave calls to that they cannot take."""
    del args
    return REFUSED


ADDRESS_OF = fastcall.address_reader()


def is_native_product(step: Any, frame: Sequence[Any]) -> bool:
    """Whether a step is a product that native code computes for the arrays of a frame."""
    return isinstance(step, CallStep) and step.native_product(frame) is not None


class SequenceSource(Protocol):
    """What a sequence is built of: the memory of a plan, and the operands of one of its calls."""

    arena_slot: int | None
    arena_bytes: int
    plans: dict[int, Plan[Any]]  # of the steps so far, by number

    @property
    def own(self) -> Sequence[Any]:
        """The plan's own slots, as a frame ends."""

    def is_array(self, slot: int) -> bool:
        """Whether a slot holds an array."""

    def pointer(self, slot: int) -> Pointer:
        """Where the array of a slot begins."""

    def launches(self, number: int, step: KernelStep) -> Sequence[CompiledLaunch[Any]]:
        """The kernels of the step of a number. Raises NotNative."""

    def product(self, step: CallStep) -> BlasProduct:
        """A step that is a product."""


class FrameSource:
    """The source of a call with a frame of arrays. views: by slot."""

    def __init__(self, views: Mapping[int, SlotView], frame: Sequence[Any], memory: HostMemory) -> None:
        self.arena_slot, self.arena_bytes, self.own = memory.arena_slot, memory.arena_bytes, memory.own
        self._views, self._frame = views, frame
        self.plans: dict[int, Plan[Any]] = {}

    def is_array(self, slot: int) -> bool:
        """Whether a slot holds an array."""
        return isinstance(self._frame[slot], np.ndarray)

    def pointer(self, slot: int) -> Pointer:
        """Where the array of a slot begins."""
        view = self._views.get(slot)
        if view is None:
            return slot, 0
        return view.slot, ADDRESS_OF(self._frame[slot]) - ADDRESS_OF(self._frame[view.slot])

    def launches(self, number: int, step: KernelStep) -> Sequence[CompiledLaunch[Any]]:
        """The kernels of a step. Raises NotNative."""
        kernel = step.kernel
        inputs, outputs = (tuple([self._frame[slot] for slot in each]) for each in (step.inputs, step.outputs))
        call: KernelCall[Any] = read(HOST, kernel, inputs, outputs, step.options)
        if needs_staging(HOST, call) or disturbed(kernel, call.arguments(HOST)):
            raise NotNative("results lie where operands do")
        plan: Plan[Any] = kernel.plan(HOST, call)
        if plan.is_idle or plan.bound.is_empty or plan.zeroed:
            raise NotNative("a kernel has no elements, or reads its results")
        if any(isinstance(each.code, Composite) for each in plan.steps):
            raise NotNative("a scan of long rows is a sequence itself")
        self.plans[number] = plan
        return plan.steps

    def product(self, step: CallStep) -> BlasProduct:
        """A step that is a product."""
        found = step.native_product(self._frame)
        assert found is not None, "it was asked for before"
        return found


class SequenceParts(NamedTuple):
    """A sequence before it is put together. words: its description; template: its slots but for that."""

    outside: CompositeInterface
    launches: list[list[CompositePiece]]
    words: array[int]
    template: array[int]
    pointers: tuple[tuple[int, int], ...]
    numbers: tuple[tuple[int, int, DType, int], ...]
    written: frozenset[int]
    constants: tuple[Any, ...]
    plans: Mapping[int, Plan[Any]]


class SequenceBuilder:
    """Collects the kernels of the steps, whose arguments become slots of the whole.

    is_alone: nobody else needs the temporaries of the plan, which the executable may have then.
    """

    def __init__(self, steps: Sequence[KernelStep | CallStep], source: SequenceSource, is_alone: bool) -> None:
        self.name, self.steps, self.source = steps[0].name, steps, source
        self.inside = source.arena_slot if is_alone and source.arena_bytes <= MOST_INSIDE else None
        own = enumerate(source.own, -len(source.own))
        self.constants = {slot: value for slot, value in own if value is not None}
        self.slots: list[Slot] = []
        self.arrays: dict[int, int] = {}  # slots of the whole by those of the plan; the first is the description
        self.numbers: dict[tuple[int, DType, int], int] = {}  # likewise, with dtype and half
        self.written: set[int] = set()  # slots whose memory is written
        self.areas: dict[str, int] = {}
        self.launches: list[list[CompositePiece]] = []
        self.is_held = False  # BLAS, to one thread
        self.product: ProductPlace | None = None  # of the step before
        self.fresh = {each.slot for step in steps for each in step.fresh}

    def parts(self) -> SequenceParts:
        """What the whole is made of. Raises NotNative."""
        for number, step in enumerate(self.steps):
            if isinstance(step, CallStep):
                self._add_product(step)
            else:
                self._add(number, step)
        self._let_go()
        if sum(self.areas.values()) > MOST_BYTES:
            raise NotNative("much memory lies between the kernels of its reductions")
        arrays = [f"p{slot}" for slot in self.arrays if slot not in self.constants]
        outside = CompositeInterface(
            self.name, self.slots, Layout(1, tuple((each, (Stride.UNIT,)) for each in arrays)), self.areas
        )
        words, template = composites.sequence_words(self.areas, self.launches), [0] * len(self.slots)
        constants = self._fill_in(template)
        return SequenceParts(
            outside, self.launches, words, words_of(template),
            tuple((place, slot) for slot, place in self.arrays.items()),
            tuple((place, *key) for key, place in self.numbers.items()),
            frozenset(self.written - {self.inside}), tuple(constants), self.source.plans,
        )  # fmt: skip

    def _fill_in(self, template: list[int]) -> list[Any]:
        """Fill in what all calls have in common, and forget its slots; the arrays among it."""
        known = self.constants
        arrays = [slot for slot in self.arrays if slot in known]
        for slot in arrays:
            template[self.arrays.pop(slot) - 1] = ADDRESS_OF(known[slot])
        for key in [key for key in self.numbers if key[0] in known]:
            slot, dtype, half = key
            with suppress(FusecError):  # which its kernel raises
                word = called(_word, (known[slot], dtype, slot, self.name, half))
                template[self.numbers[key] - 1] = word
                del self.numbers[key]
        return [known[slot] for slot in arrays]

    def _add(self, number: int, step: KernelStep) -> None:
        """The kernels of one step."""
        source, launches = self.source, self.source.launches(number, step)
        product, self.product = self.product, None
        named = dict(zip((param.name for param in step.kernel.params), (*step.inputs, *step.outputs), strict=True))
        where = {name: source.pointer(slot) for name, slot in named.items() if source.is_array(slot)}
        self.written |= {source.pointer(slot)[0] for slot in step.outputs}
        spans = None
        if product is not None and len(launches) == 1 and not self._has_beside(number):
            new = {*self.fresh, source.arena_slot} - {base for base, _ in product.reads}
            outputs = frozenset([name for name, slot in named.items() if slot in step.outputs])
            spans = spans_of(product, launches[0], where, outputs, new)
        if product is None or spans is None:
            self._let_go()
        else:
            is_over = product.result[0] in step.releases  # nobody else reads the product
            made = in_place(product, launches[0], where, outputs) if is_over else None
            if made is not None:
                where = {name: made if each == product.result else each for name, each in where.items()}
                self.launches[-1] = [self._product_piece(product.product, (*product.reads, made))]
            self.launches[-1] = [replace(self.launches[-1][0], span=spans[0])]
        prefix = f"{number}."
        for each in launches:
            self.areas |= {prefix + name: prod(shape) * dtype.nbytes for name, shape, dtype in each.launch.made}
        for each in launches:
            copies, places = [], []
            for slot, name, dtype, half in each.arguments.scalars:
                copies.append((slot, self._number(named[name], dtype, half), 0))
            for slot, name, offset in each.arguments.pointers:
                base, start = where.get(name, (None, 0))
                if name in where and base == self.inside:
                    self.areas[ARENA] = source.arena_bytes
                    places.append((slot, ARENA, start + offset))
                elif base is not None:
                    copies.append((slot, self._array(base), start + offset))
                else:
                    places.append((slot, prefix + name, offset))
            if not step.place and spans is None:
                self.launches.append([])
            span = 0 if spans is None else spans[1]
            self.launches[-1].append(
                CompositePiece(each.code, each.arguments.template, copies, places, each.launch.positions, span)
            )

    def _add_product(self, step: CallStep) -> None:
        """A product by BLAS."""
        product = self.source.product(step)
        if product.is_held and not self.is_held:
            self.is_held = True
            self.launches.append([_holding(product, 0)])
        first, second, result = [self.source.pointer(slot) for slot in (*step.inputs, *step.outputs)]
        self.written.add(result[0])
        self.held_by = product
        self.launches.append([self._product_piece(product, (first, second, result))])
        self.product = ProductPlace(product, result, (first, second), step.fresh[0].dtype.itemsize)

    def _product_piece(self, product: BlasProduct, pointers: tuple[Pointer, ...]) -> CompositePiece:
        copies, places = [], []
        for slot, place in enumerate(product.places):
            base, start = pointers[place]
            if base == self.inside:
                self.areas[ARENA] = self.source.arena_bytes
                places.append((slot, ARENA, start))
            else:
                copies.append((slot, self._array(base), start))
        return CompositePiece(product.executable, product.template, copies, places, product.positions)

    def _has_beside(self, number: int) -> bool:
        """Whether the kernels of a step run beside those of the step before it, or after it."""
        others = [each for each in self.steps[number : number + 2] if isinstance(each, KernelStep)]
        return any(each.place for each in others)

    def _let_go(self) -> None:
        """Have BLAS take all its threads again."""
        if self.is_held:
            self.is_held = False
            self.launches.append([_holding(self.held_by, 1)])

    def _array(self, slot: int) -> int:
        if slot not in self.arrays:
            self.slots.append(Slot("pointer", f"p{slot}", 0, INT64))
            self.arrays[slot] = len(self.slots)
        return self.arrays[slot]

    def _number(self, slot: int, dtype: DType, half: int) -> int:
        key = (slot, dtype, half)
        if key not in self.numbers:
            self.slots.append(Slot("scalar", f"n{slot} {dtype}", half, dtype))
            self.numbers[key] = len(self.slots)
        return self.numbers[key]


def _holding(product: BlasProduct, which: int) -> CompositePiece:
    """What holds BLAS to one thread for a product, and what lets it go."""
    return CompositePiece(holding(product.executable.store)[which], hold_slots(), (), (), 1)


def _word(value: Any, dtype: DType, slot: int, name: str, half: int) -> int:
    """A number of a plan as a kernel gets it, or one of two parts of it."""
    return encode(value, dtype, f"s{slot}", name)[half]


def sequence_of(parts: SequenceParts, steps: Sequence[Any], frame: Sequence[Any]) -> NativeSequence:
    """The kernels of some steps as one executable. frame: of a call like all of the plan's."""
    whole = composites.sequence(parts.outside, parts.launches, parts.words)
    fresh = tuple([each for step in steps for each in step.fresh])
    own = {each.slot for each in fresh}
    given = [slot for _, slot in parts.pointers if slot >= 0 and slot not in own]
    return NativeSequence(
        whole, _template(whole, parts.template), parts.pointers, parts.numbers, fresh,
        tuple([(slot, frame[slot].dtype.alignment) for slot in given]), tuple(parts.written - own), steps[0].name,
        parts.constants, parts.plans,
    )  # fmt: skip


def described_again(
    known: NativeSequence, fresh: tuple[Fresh, ...], words: Sequence[int], template: Sequence[int]
) -> NativeSequence:
    """The same kernels in calls of other extents. words, template: see `SequenceParts`."""
    whole = composites.described_again(known.executable, array("q", words))
    return NativeSequence(
        whole, _template(whole, template), known.pointers, known.numbers, fresh, known.aligned, known.written,
        known.name, known.constants, {},
    )  # fmt: skip


def _template(whole: Composite, rest: Sequence[int]) -> array[int]:
    assert whole.description is not None, "sequences have descriptions"
    return array("q", [whole.description.address, *rest])
