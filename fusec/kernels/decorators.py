"""The decorators: they turn Python functions into functions of arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from fusec.arguments.annotations import FunctionOptions, GridOptions, StencilOptions
from fusec.base.diagnostics import with_article
from fusec.base.kernel_abi import Fp
from fusec.dispatch.checked import Bounds, Checks, wanted
from fusec.dispatch.planned import hide_internal_frames
from fusec.errors.arguments import DefinitionNotText
from fusec.errors.python import NotAFunction
from fusec.frontends.capture.closure import Origin, Text
from fusec.frontends.capture.frozen_globals import frozen_globals
from fusec.kernels.elementwise_function import Decoration, Elementwise
from fusec.kernels.grid_kernel import Explicit, block_of
from fusec.kernels.public_types import ElementwiseFunction, GridKernel
from fusec.kernels.stencil import Stencil, border_of

Decorated = Callable[..., object]
P = ParamSpec("P")
R = TypeVar("R")


@overload
def elementwise(function: Callable[P, R], /, **options: Unpack[FunctionOptions]) -> ElementwiseFunction[P, R]: ...
@overload
def elementwise(function: str, /, **options: Unpack[FunctionOptions]) -> ElementwiseFunction[..., Any]: ...
@overload
def elementwise(
    function: None = None, /, **options: Unpack[FunctionOptions]
) -> Callable[[Callable[P, R]], ElementwiseFunction[P, R]]: ...


@hide_internal_frames
def elementwise(
    function: Decorated | str | None = None,
    /,
    *,
    name: str = "",
    fp: Fp = "strict",
    names: Mapping[str, object] | None = None,
    bounds: Bounds | None = None,
    check: Checks | None = None,
) -> Any:
    """Compile a function of scalars to a function of arrays; a decorator, with or without options.

    function: a Python function, whose source is read and never run, or the text of a function, after the text of
    functions that it calls. name: shown in messages and used as the entry point. fp: "strict", "contract" or "fast", as
    for ElementwiseKernel. names: the values of the free names of a text. bounds: "check" tests every index into an
    array and every assertion; the first violation raises. check: "wrap" reports integers that lose their value. None
    follows FUSEC_CHECK.
    Results have the shape to which the arguments broadcast, and the dtypes that NumPy would give them.
    Raises FusecError, with the place in the source, for anything outside of the subset, and if there is no source.

    >>> @fusec.elementwise
    ... def relu(x):
    ...     return x if x > 0 else 0
    >>> relu(np.array([-1.5, 2.5]))
    array([0. , 2.5])
    """

    @hide_internal_frames
    def decorate(decorated: Decorated | str) -> Elementwise:
        return Elementwise(decoration(decorated, name, fp, names, wanted(bounds, check)))

    return decorate if function is None else decorate(function)


@overload
def stencil(function: Callable[P, R], /, **options: Unpack[StencilOptions]) -> ElementwiseFunction[P, R]: ...
@overload
def stencil(function: str, /, **options: Unpack[StencilOptions]) -> ElementwiseFunction[..., Any]: ...
@overload
def stencil(
    function: None = None, /, **options: Unpack[StencilOptions]
) -> Callable[[Callable[P, R]], ElementwiseFunction[P, R]]: ...


@hide_internal_frames
def stencil(
    function: Decorated | str | None = None,
    /,
    *,
    boundary: str | Sequence[str] = "constant",
    cval: object = 0,
    axes: Sequence[int] = (),
    name: str = "",
    fp: Fp = "strict",
    names: Mapping[str, object] | None = None,
    bounds: Bounds | None = None,
    check: Checks | None = None,
) -> Any:
    """Compile a function of an element and its neighbours to a function of arrays; a decorator.

    In the function, ``a[-1, 0]`` is the preceding neighbour along the first axis, and ``a`` is the element itself.
    boundary: one name for all axes, or one for each, as in scipy.ndimage: "constant" (`cval`), "nearest", "reflect",
    "mirror", "wrap"; or "skip", which skips elements that lack a neighbour: they are 0 in a new output and unchanged in
    a given one. axes: the axes to which the indices refer, if not all. function, name, fp, names, bounds, check: as for
    `elementwise`. Results have the shape of the array, and the dtype that NumPy would give them.
    Raises FusecValueError for unknown boundaries, and the errors of `elementwise`.

    >>> @fusec.stencil(boundary="nearest")
    ... def slope(a):
    ...     return a[1] - a[-1]
    >>> slope(np.array([1.0, 2.0, 4.0]))
    array([1., 3., 2.])
    """
    border = border_of(boundary, cval, axes)

    @hide_internal_frames
    def decorate(decorated: Decorated | str) -> Stencil:
        return Stencil(decoration(decorated, name, fp, names, wanted(bounds, check)), border)

    return decorate if function is None else decorate(function)


@overload
def kernel(function: Callable[P, object], /, **options: Unpack[GridOptions]) -> GridKernel[P]: ...
@overload
def kernel(function: str, /, **options: Unpack[GridOptions]) -> GridKernel[...]: ...
@overload
def kernel(
    function: None = None, /, **options: Unpack[GridOptions]
) -> Callable[[Callable[P, object]], GridKernel[P]]: ...


@hide_internal_frames
def kernel(
    function: Decorated | str | None = None,
    /,
    *,
    name: str = "",
    fp: Fp = "strict",
    names: Mapping[str, object] | None = None,
    bounds: Bounds | None = None,
    check: Checks | None = None,
    block: int | Sequence[int] | None = None,
) -> Any:
    """Compile a loop over a grid to a kernel whose iterations run in parallel; a decorator.

    The function takes arrays, which it indexes and may change, and numbers. Its last statement is ``for i in
    fusec.grid(n):`` or ``for i, j in fusec.grid((rows, columns)):``. The iterations run in no particular order: an
    element that several iterations write needs an atomic update, such as `fusec.atomic_add`. Calls return None. block:
    the number of positions of a block along each axis; the positions of a block wait for each other at `fusec.barrier`
    and share the arrays of `fusec.shared`; the grid is a multiple of the block. function, name, fp, names, bounds,
    check: as for `elementwise`. Arrays have any shape and dtype. Raises FusecValueError for impossible blocks, and the
    errors of `elementwise`.

    >>> @fusec.kernel
    ... def count(bins, x):
    ...     for i in fusec.grid(x.shape[0]):
    ...         fusec.atomic_add(bins, x[i], 1)
    >>> bins = np.zeros(3, int)
    >>> count(bins, np.array([0, 2, 2]))
    >>> bins
    array([1, 0, 2])
    """
    extents = block_of(block)

    @hide_internal_frames
    def decorate(decorated: Decorated | str) -> Explicit:
        return Explicit(decoration(decorated, name, fp, names, wanted(bounds, check)), extents)

    return decorate if function is None else decorate(function)


OTHERS = {"builtin_function_or_method": "built-in function", "type": "class"}  # types by the usual names


def given_names(names: object) -> dict[str, object]:
    """The values of a text's free names, from names=. Raises DefinitionNotText."""
    if names is not None and not isinstance(names, Mapping):
        cure = 'pass a dictionary, e.g. names={"scale": 2.0}'
        raise DefinitionNotText("function", "names", "a dictionary", type(names).__name__, cure).at()
    return dict(names or {})


def decoration(given: object, name: str, fp: Fp, names: Mapping[str, object] | None, checks: Checks) -> Decoration:
    """What a function is made of. Raises NotAFunction."""
    origin, kept = origin_of(given, names)
    return Decoration(origin, name, fp, kept, checks)


def origin_of(given: object, names: Mapping[str, object] | None) -> tuple[Origin, Mapping[str, object]]:
    """The decorated function, and the present values of its free names. Raises NotAFunction."""
    if _is_signature(given):
        what = f"{given!r} gives types, and is not a function"
        raise NotAFunction(what, "leave it out: types are inferred at every call; an annotation fixes one").at()
    if isinstance(given, str):
        return Text(given, given_names(names)), {}
    if isinstance(given, Elementwise):
        return given.__fusec_origin__, given.kept
    inner = getattr(given, "__func__", given)  # of a staticmethod
    if not isinstance(inner, FunctionType):
        kind = type(given).__name__
        what = f"{with_article(OTHERS.get(kind, kind))} is not a function made with def"
        raise NotAFunction(what, "decorate a function made with def, or pass its text").at()
    return inner, frozen_globals(inner)


def _is_signature(given: object) -> bool:
    """Whether it is what Numba's decorators take: ``float32(float32)``, or a list of such."""
    if isinstance(given, (list, tuple)):
        return bool(given) and all(map(_is_signature, given))
    text = given if isinstance(given, str) else str(given) if type(given).__module__.startswith("numba") else ""
    return re.fullmatch(r"\s*[\w.]*(\[[:, ]*\])?\s*\([\w.:,\s\[\]]*\)\s*", text) is not None
