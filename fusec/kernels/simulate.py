"""Kernels without compilation: in the interpreter of the IR, or as the Python functions that define them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from fusec.arguments.operands import is_number
from fusec.dispatch import checked
from fusec.dispatch.interpret import interpreted
from fusec.dispatch.planned import hide_internal_frames
from fusec.dispatch.spec import PLAIN, CallOptions
from fusec.errors.arguments import KERNELS, CannotSimulate
from fusec.kernels.elementwise_function import Elementwise
from fusec.kernels.elementwise_kernel import ElementwiseKernel
from fusec.kernels.grid_kernel import Explicit
from fusec.kernels.stencil import Stencil
from fusec.language.emulated_block import PythonBlock

OTHERS = {  # classes of what python=True does not run
    "ReductionKernel": "a reduction", "Reduction": "a reduction", "ScanKernel": "a scan", "NumExpr": "an expression",
    "Fused": "a fused function",
    "vectorize": "a function of fusec.vectorize",
}  # fmt: skip


@hide_internal_frames
def simulate(kernel: object, *, python: bool = False) -> Callable[..., Any]:
    """A slow function with the kernel's arguments and results, for debugging.

    It interprets the kernel's IR in NumPy. Nothing is compiled, the bits are those of every target, and indices outside
    of arrays and failed assertions are reported as in a kernel with ``bounds="check"``. In kernels with block= it finds
    barriers that some positions miss, missing barriers, and shared elements that are read before they are written.
    python: run the Python function of `fusec.elementwise` or `fusec.kernel` itself, one element after another, with
    NumPy scalars; print, breakpoint() and exceptions work there.
    kernel: a kernel of any kind, a decorated, fused or built-in function, or a NumExpr. Arrays have any shape and
    dtype.
    Raises FusecTypeError for other objects; if python is set, also for stencils, reductions, and what is made of texts.

    >>> half = fusec.elementwise("def half(x): return x / 2")
    >>> fusec.simulate(half)(np.array([1.0, 3.0]))
    array([0.5, 1.5])
    """
    reduces = getattr(kernel, "simulated", None)
    if reduces is not None and not isinstance(kernel, type):
        if python:
            owner = type(getattr(reduces, "__self__", kernel)).__name__
            raise _not_in_python(OTHERS.get(owner, "a function of arrays")).at()
        return hide_internal_frames(reduces)
    if not isinstance(kernel, (Elementwise, ElementwiseKernel)):
        raise CannotSimulate(getattr(kernel, "__name__", type(kernel).__name__), KERNELS).at()
    if python:
        return _in_python(kernel)
    if isinstance(kernel, ElementwiseKernel):
        return lambda *args, **named: _of_texts(kernel, args, **named)
    if isinstance(kernel, Explicit):
        return lambda *args, **named: _explicit(kernel, args, named)
    return lambda *args, **named: _function(kernel, args, **named)


# --- in the interpreter ---------------------------------------------------------------------------------------------


@hide_internal_frames
def _of_texts(kernel: ElementwiseKernel, args: tuple[object, ...], size: int = -1, out: object = None) -> object:
    outputs = () if out is None else tuple(out) if isinstance(out, (tuple, list)) else (out,)
    args = (*args, *outputs)
    if len(args) not in (kernel.nin, kernel.nargs):
        raise kernel.wrong_number(len(args)).at()
    guarded = checked.checked(kernel, checked.with_bounds(kernel.checks))
    results = checked.run(guarded, args, CallOptions(size=size), interpreted)
    if kernel.no_return:
        return None
    return results[0] if kernel.nout == 1 and not kernel.return_tuple else results


@hide_internal_frames
def _explicit(kernel: Explicit, args: tuple[object, ...], named: dict[str, object]) -> None:
    variant, inputs, grid = kernel.prepared(args, named)
    checked.run(variant.guarded, inputs, CallOptions(size=grid), interpreted)


@hide_internal_frames
def _function(kernel: Elementwise, args: tuple[object, ...], out: object = None, **named: object) -> object:
    given = (*args, *named.values())
    if all(is_number(each) for each in given):
        args, named = tuple(map(np.asarray, args)), {name: np.asarray(value) for name, value in named.items()}
    variant, inputs, outputs = kernel.bound(args, named)
    if out is not None:
        outputs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    results = checked.run(variant.guarded, (*inputs, *outputs), PLAIN, interpreted)
    if all(is_number(each) for each in given):
        results = tuple(each[()] for each in results)  # type: ignore[index]
    return results if kernel.returns_tuple else results[0]


# --- in Python --------------------------------------------------------------------------------------------------------


def _in_python(kernel: Elementwise | ElementwiseKernel) -> Callable[..., object]:
    """The function itself. Raises CannotSimulate if it is none of Python, or looks at neighbours."""
    origin = kernel.__fusec_origin__ if isinstance(kernel, Elementwise) else None
    if not isinstance(origin, FunctionType) or isinstance(kernel, Stencil):
        of_text = "a function given as a text" if isinstance(kernel, Elementwise) else "a kernel of C"
        raise _not_in_python("a stencil" if isinstance(kernel, Stencil) else of_text).at()
    if isinstance(kernel, Explicit):
        return origin if not kernel.block else lambda *args, **named: _each_block(kernel, origin, args, named)
    assert isinstance(kernel, Elementwise), "of the others there is no function"
    return lambda *args, **named: _each_element(kernel, origin, args, named)


def _not_in_python(what: str) -> CannotSimulate:
    cure = "omit python=True: the interpreter runs it"
    return CannotSimulate(what, cure, " with python=True")


@hide_internal_frames
def _each_block(kernel: Explicit, function: FunctionType, args: tuple[object, ...], named: dict[str, object]) -> None:
    """Call a function for every position of one block after the other."""
    _, _, blocks = kernel.prepared(args, named)
    for index in np.ndindex(*blocks):
        PythonBlock(kernel.name, kernel.block, index).run(lambda: function(*args, **named))


def _each_element(
    kernel: Elementwise, function: FunctionType, args: Sequence[object], named: dict[str, object]
) -> object:
    """Call a function for every element of arrays that broadcast; numbers are passed as they are."""
    out = named.pop("out", None)
    given = dict(zip(kernel.params, args, strict=False)) | named
    arrays = {name: np.asarray(value) for name, value in given.items() if not is_number(value)}
    if not arrays:
        return function(**given)
    shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
    spread = {name: np.broadcast_to(array, shape) for name, array in arrays.items()}
    found = [
        function(**(given | {name: array[index] for name, array in spread.items()})) for index in np.ndindex(*shape)
    ]
    columns = list(zip(*found, strict=True)) if kernel.returns_tuple else [tuple(found)]
    results = tuple(np.array(column).reshape(shape) for column in columns)
    if out is not None:
        targets = tuple(out) if isinstance(out, (tuple, list)) else (out,)
        for target, result in zip(targets, results, strict=True):
            np.copyto(target, result, casting="unsafe")
        results = targets
    return results if kernel.returns_tuple else results[0]
