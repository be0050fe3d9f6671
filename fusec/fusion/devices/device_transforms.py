"""Fourier transforms on devices by cuFFT: which calls are transforms, and how strides become arguments of its plans.

A plan transforms up to three axes at once, of arrays whose other axes are one axis, and has its own steps for what is
read and what is written. Where several axes are left over it is called several times, or arrays are copied first. What
is padded or has another dtype than is transformed is copied too, and so is what cuFFT reads as half of a Hermitian
array, since it writes there.

Note [Halves]: NumPy ignores the imaginary parts of an element that is its own mirror image, those at 0 and, of even
sizes, at half the size, once other axes are transformed. cuFFT computes anything if they are not 0. So other axes are
transformed first, and then these parts are cleared.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache
from math import prod, sqrt
from typing import Any, NamedTuple

from fusec.base import dtypes
from fusec.base.dtypes import DType
from fusec.fusion.devices.recipes import FEW_CALLS, Part, Recipe, RecipeBuilder, named
from fusec.fusion.functions.matrix_products import MAX_KNOWN, Arrangement, Axis, joined
from fusec.fusion.trace.trace_values import LibraryCall
from fusec.runtime import cuda

LIBRARY = cuda.cufft

_ROWS = (dtypes.FLOAT32, dtypes.FLOAT64, *dtypes.COMPLEX)
_ALONG_AXIS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
_ALONG_AXES = ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn")
_NAMES = frozenset(f"np.fft.{name}" for name in (*_ALONG_AXIS, *_ALONG_AXES))


class TransformArguments(NamedTuple):
    """What a call of NumPy's is given besides an array. kind: the function's name without the number of axes."""

    kind: str
    norm: str
    axes: tuple[int, ...]
    sizes: tuple[int | None, ...]


class Wanted(NamedTuple):
    """Transforms as a call asks for them: axes with the sizes of their transforms, the halved one last.

    conjugates: what a transform to real numbers is given, or what one of real numbers makes.
    """

    kind: cuda.TransformKind
    is_forward: bool
    axes: tuple[int, ...]
    sizes: tuple[int, ...]
    factor: float
    conjugates: bool


# --- calls that are transforms ---------------------------------------------------------------------------------------


@lru_cache(MAX_KNOWN)
def computes(call: LibraryCall) -> bool:
    """Whether cuFFT computes a call."""
    if call.name not in _NAMES or len(call.buffers) != 1 or call.buffers[0].dtype not in _ROWS:
        return False
    axes = named(call, [None] * len(call.operands)).get("axes")
    rank = call.buffers[0].phantom.ndim
    return axes is None or len({axis % rank for axis in axes}) == len(axes)


def recipe(call: LibraryCall, forms: Sequence[Any], device: int) -> Recipe:
    """How a transform of arrays is computed. forms: of the operands and the result.

    Raises CudaMathMissing, CudaMathRefused.
    """
    given = named(call, forms[:-1])
    name, a = call.name.removeprefix("np.fft."), given["a"]
    rank, norm = len(a.shape), given.get("norm") or "backward"
    axes: Sequence[int] | None
    sizes: Sequence[int | None] | None
    if name in _ALONG_AXIS:
        axes, sizes = (given.get("axis", -1),), (given.get("n"),)
    else:
        axes, sizes = given.get("axes", (-2, -1) if name.endswith("2") else None), given.get("s")
        if axes is None:
            axes = range(rank) if sizes is None else range(-len(sizes), 0)
    sizes = (None,) * len(axes) if sizes is None else sizes
    asked = TransformArguments(name.rstrip("2n"), norm, tuple(axis % rank for axis in axes), tuple(sizes))
    return _made(asked, tuple(forms), device)


@lru_cache(MAX_KNOWN)
def _made(asked: TransformArguments, forms: tuple[Any, ...], device: int) -> Recipe:
    kind, norm, axes, sizes = asked
    places = [at for at, form in enumerate(forms) if isinstance(form, Arrangement)]
    builder = RecipeBuilder(forms)
    source, target = map(builder.whole, places)
    is_half, is_whole = kind in ("rfft", "ihfft"), kind in ("irfft", "hfft")
    wanted = [source.form.shape[axis] if size in (None, -1) else size for axis, size in zip(axes, sizes, strict=True)]
    if is_whole:
        wanted[-1] = target.form.shape[axes[-1]]
    is_forward = kind in ("fft", "rfft", "hfft")
    divides = {"backward": not is_forward, "forward": is_forward, "ortho": True}[norm]
    total = prod(wanted)
    factor = (1 / sqrt(total) if norm == "ortho" else 1 / total) if divides and total else 1.0
    transform = Wanted(
        "R2C" if is_half else "C2R" if is_whole else "C2C", is_forward, axes, tuple(wanted), factor, "hfft" in kind
    )
    if 0 not in target.form.shape:
        _TransformBuilder(builder, transform, device).add(source, target)
    return builder.made()


# --- stages ----------------------------------------------------------------------------------------------------------


class TransformCall(NamedTuple):
    """Calls of one plan. starts: of each, bytes from the first elements of source and target."""

    form: cuda.TransformForm
    starts: tuple[tuple[int, int], ...]
    is_forward: bool


class TransformSeries(NamedTuple):
    """Transforms one after another. groups: the axes of each; half: the axis that the first halves, or doubles."""

    groups: Sequence[tuple[int, ...]]
    half: int | None
    kind: cuda.TransformKind
    is_forward: bool


class _TransformBuilder:
    """Adds the stages of transforms to a recipe."""

    def __init__(self, recipe: RecipeBuilder, wanted: Wanted, device: int) -> None:
        self.recipe, self.wanted, self.device = recipe, wanted, device
        # cuFFT's transforms to real numbers are inverse and those of real numbers forward; conjugates turn the others
        self.is_forward = wanted.is_forward if wanted.kind == "C2C" else wanted.kind == "R2C"

    def add(self, source: Part, target: Part) -> None:
        """Transform an array."""
        wanted = self.wanted
        if wanted.kind == "C2R":
            self._to_real(source, target)
            return
        half = wanted.axes[-1] if wanted.kind == "R2C" and wanted.sizes[-1] > 1 else None
        series = TransformSeries(self._groups(half), half, "C2C" if half is None else "R2C", self.is_forward)
        self._from_to(source, target, self._shape(source), series, (wanted.conjugates, wanted.factor))

    def _to_real(self, source: Part, target: Part) -> None:
        """Half of a Hermitian array to real numbers."""
        wanted, recipe = self.wanted, self.recipe
        *others, last = wanted.axes
        shape, size = self._shape(source), wanted.sizes[-1]
        room = recipe.room(shape, dtypes.complex_type(target.form.row), self._order(target, last))
        change = "conj(x)" if wanted.conjugates else "x"
        groups = [tuple(each) for each in _chunks([axis for axis in others if shape[axis] > 1])]
        if groups and not wanted.conjugates:
            self._from_to(source, room, shape, TransformSeries(groups, None, "C2C", self.is_forward), (False, 1.0))
        else:
            self._moved(source, room, shape, change)
        if size == 1:
            recipe.copy(room.as_real(), target, "x", wanted.factor)
            return
        steps, extents = [*room.form.strides], [*shape]
        steps[last], extents[last] = steps[last] * (size // 2), 2 - size % 2
        mirrors = room._replace(form=room.form._replace(shape=tuple(extents), strides=tuple(steps)))
        recipe.copy(mirrors, mirrors, "real(x)")  # see Note [Halves]
        series = TransformSeries([(last,)], last, "C2R", False)
        passes = _passes(room, target, series)
        if passes is None or _calls(passes) > FEW_CALLS:
            written = recipe.room(target.form.shape, target.form.row, self._order(target, last))
            passes = _passes(room, written, series)
            assert passes is not None, "cuFFT takes dense arrays"
            self._call(passes, room, written)
            recipe.copy(written, target, "x", wanted.factor)
            return
        self._call(passes, room, target)
        self._scaled(target, "x", wanted.factor)

    def _from_to(
        self, source: Part, target: Part, shape: Sequence[int], series: TransformSeries, after: tuple[bool, float]
    ) -> None:
        """Complex transforms, the first of real numbers if there is a halved axis.

        after: whether results are conjugated, and their factor.
        """
        change, factor = "conj(x)" if after[0] else "x", after[1]
        if not series.groups:
            if source.form.row.is_complex or change == "x":
                self._moved(source, target, shape, change, factor)
            else:
                self._moved(source, target, shape, "x", factor)
                self._scaled(target, change, 1.0)
            return
        read = target.form.row if series.half is None else dtypes.real_type(target.form.row)
        must = source.form.row != read or any(
            size > extent for size, extent in zip(shape, source.form.shape, strict=True)
        )
        order = self._order(target, series.groups[0][-1] if series.half is None else series.half)
        best: tuple[Any, ...] | None = None
        for copied in itertools.product((False, True), repeat=2):
            if must and not copied[0]:
                continue
            first, last = (
                _dense(shape, read, order) if copied[0] else source.of(shape).form,
                _dense(target.form.shape, target.form.row, order) if copied[1] else target.form,
            )
            passes = _passes(Part(0, 0, first), Part(1, 0, last), series)
            if passes is not None:
                cost = max(_calls(passes), FEW_CALLS), sum(copied), _calls(passes)
                best = min(best or (cost, copied, passes), (cost, copied, passes), key=lambda each: each[0])
        assert best is not None, "cuFFT takes dense arrays"
        _, (copies_source, copies_target), passes = best
        recipe, begun, done = self.recipe, source.of(shape), target
        if copies_source:
            begun = recipe.room(shape, read, order)
            self._moved(source, begun, shape)
        if copies_target:
            done = recipe.room(target.form.shape, target.form.row, order)
        self._call(passes, begun, done)
        if copies_target:
            recipe.copy(done, target, change, factor)
        else:
            self._scaled(target, change, factor)

    def _moved(self, source: Part, target: Part, shape: Sequence[int], change: str = "x", factor: float = 1.0) -> None:
        """Copy what is transformed of an array to one of that shape, zeros where the array has nothing."""
        common = [min(pair) for pair in zip(shape, source.form.shape, strict=True)]
        if common != [*shape]:
            self.recipe.clear(target)
        if change == "conj(x)" and not source.form.row.is_complex:
            change = "x"
        self.recipe.copy(source.of(common), target.of(common), change, factor)

    def _scaled(self, array: Part, change: str, factor: float) -> None:
        if change != "x" or factor != 1:
            self.recipe.copy(array, array, change, factor)

    def _call(self, passes: Sequence[TransformCall], source: Part, target: Part) -> None:
        """Transform from one array to another, and in that."""
        for each in passes:
            plan = cuda.transform_plan(each.form, self.device)
            space = self.recipe.room((max(1, plan.nbytes),), dtypes.UINT8)
            parts = [space]
            for start, other in each.starts:
                parts += [source.of((), start), target.of((), other)]
            self.recipe.call(cuda.Transform(plan, each.is_forward).run, parts)
            source = target

    def _shape(self, source: Part) -> tuple[int, ...]:
        """The extents of what is transformed."""
        shape, wanted = [*source.form.shape], self.wanted
        for axis, size in zip(wanted.axes, wanted.sizes, strict=True):
            shape[axis] = size
        if wanted.kind == "C2R":
            shape[wanted.axes[-1]] = wanted.sizes[-1] // 2 + 1
        return tuple(shape)

    def _groups(self, half: int | None) -> list[tuple[int, ...]]:
        """The axes of each pass; of a halved axis and others, the halved one is last in the first."""
        wanted = self.wanted
        rest = [axis for axis, size in zip(wanted.axes, wanted.sizes, strict=True) if size > 1 and axis != half]
        if half is None:
            return [tuple(each) for each in _chunks(rest)]
        room = cuda.MOST_AXES - 1
        first, rest = rest[-room:], rest[:-room]
        return [(*first, half), *(tuple(each) for each in _chunks(rest))]

    def _order(self, target: Part, last: int) -> list[int]:
        """The axes of dense copies, outermost first: transformed ones are the innermost."""
        form = target.form

        def place(axis: int) -> tuple[bool, bool, int]:
            return axis == last, axis in self.wanted.axes, -abs(form.strides[axis])

        return sorted(range(len(form.shape)), key=place)


def _chunks(axes: Sequence[int]) -> list[Sequence[int]]:
    return [axes[max(0, stop - cuda.MOST_AXES) : stop] for stop in range(len(axes), 0, -cuda.MOST_AXES)]


def _passes(source: Part, target: Part, series: TransformSeries) -> list[TransformCall] | None:
    """The first group of axes from one array to another, the rest in that; None if cuFFT cannot."""
    found: list[TransformCall] = []
    half, kind = series.half, series.kind
    for axes in series.groups:
        made = _pass_of(source.form, target.form, axes, half, kind)
        if made is None:
            return None
        found.append(TransformCall(*made, series.is_forward))
        source, half, kind = target, None, "C2C"
    return found


def _calls(passes: Sequence[TransformCall]) -> int:
    return sum(len(each.starts) for each in passes)


def _dense(shape: Sequence[int], row: DType, order: Sequence[int]) -> Arrangement:
    builder = RecipeBuilder(())
    return builder.room(shape, row, order).form


# --- from strides to arguments ---------------------------------------------------------------------------------------


def _pass_of(
    source: Arrangement, target: Arrangement, axes: Sequence[int], half: int | None, kind: cuda.TransformKind
) -> tuple[cuda.TransformForm, tuple[tuple[int, int], ...]] | None:
    """A plan for arrays that lie like this, and where each of its calls starts; None if cuFFT has none."""
    forms = source, target
    if any(step % form.row.nbytes for form in forms for step in form.strides):
        return None
    steps = [[step // form.row.nbytes for step in form.strides] for form in forms]
    for own in steps:
        order = sorted(axes, key=lambda axis: (axis == half, -own[axis]))
        one, other = (_placed(form, each, order) for form, each in zip(forms, steps, strict=True))
        if one is not None and other is not None:
            break
    else:
        return None
    others = [
        Axis(extent, (steps[0][axis], steps[1][axis]))
        for axis, extent in enumerate(target.shape)
        if axis not in axes and extent > 1
    ]
    others = joined(sorted(others, key=lambda each: (-each.steps[1], -each.steps[0])))
    several = max((each for each in others if min(each.steps) > 0), key=lambda each: each.extent, default=None)
    rest = [each for each in others if each is not several]
    starts = []
    for place in itertools.product(*(range(each.extent) for each in rest)):
        reads, writes = (
            form.row.nbytes * sum(at * each.steps[which] for at, each in zip(place, rest, strict=True))
            for which, form in enumerate(forms)
        )
        starts.append((reads, writes))
    for which, form in enumerate(forms):  # cuFFT wants pairs of real numbers aligned too
        nbytes = min(form.row.nbytes * (1 if form.row.is_complex else 2), cuda.VECTOR_BYTES)
        if any((form.rest + each[which]) % nbytes for each in starts):
            return None
    distances = (prod(source.shape), prod(target.shape)) if several is None else several.steps
    whole = target if kind == "C2R" else source
    made = cuda.TransformForm(
        kind,
        target.row in (dtypes.FLOAT64, dtypes.COMPLEX128),
        tuple(whole.shape[axis] for axis in order),
        1 if several is None else several.extent,
        cuda.Placing(*one, distances[0]),
        cuda.Placing(*other, distances[1]),
    )
    return made, tuple(starts)


def _placed(form: Arrangement, steps: Sequence[int], order: Sequence[int]) -> tuple[int, tuple[int, ...]] | None:
    """The step along the last axis, and the extents that axes have in memory; None if these are no whole numbers."""
    *_, last = order
    step = steps[last]
    if step <= 0:
        return None
    extents = [form.shape[order[0]]]
    for outer, inner in itertools.pairwise(order):
        if steps[inner] <= 0 or steps[outer] % steps[inner] or steps[outer] // steps[inner] < form.shape[inner]:
            return None
        extents.append(steps[outer] // steps[inner])
    return step, tuple(extents)
