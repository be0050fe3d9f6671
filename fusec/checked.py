"""Kernels that are checked as they run: indices inside their arrays, assertions that hold.

A checked kernel is the same one with a pass more and one more argument, an array for the first violation.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fusec import calls, forking
from fusec.dtypes import UINT32, DType
from fusec.errors.base import FusecError
from fusec.errors.checks import AssertionFailed, IndexOutside, UnknownCheck
from fusec.frontends.python.definition import PythonDefinition
from fusec.layouts import Shape
from fusec.operands import is_foreign, is_number
from fusec.pipeline import Source
from fusec.planned import Planned, runner
from fusec.records import dataclass, replace
from fusec.signature import Parameter
from fusec.source import Span

if TYPE_CHECKING:
    from fusec.ir.loops import Program
    from fusec.passes.bounds import Site

Bounds = Literal["check", "trust"]

FAULT, WORDS = "fusec_fault", 5  # as fusec.passes.bounds has them


def wanted(bounds: object) -> bool:
    """Whether a kernel is checked; None asks FUSEC_CHECK. Raises UnknownCheck."""
    if bounds is None:
        text = os.environ.get("FUSEC_CHECK", "").strip()
        if text not in ("", "0", "bounds"):
            cure = "FUSEC_CHECK must be 'bounds' to turn checks on; '0', or leaving it unset, turns them off"
            raise UnknownCheck("FUSEC_CHECK", repr(text), cure).at()
        return text == "bounds"
    if bounds not in ("check", "trust"):
        raise UnknownCheck("bounds=", repr(bounds)).at()
    return bounds == "check"


@dataclass(frozen=True)
class CheckedSource:
    """A definition whose programs check what they do."""

    inner: Source

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.inner.name

    @property
    def options(self) -> tuple[str, ...]:
        """Compiler options."""
        return self.inner.options

    @property
    def texts(self) -> dict[str, Any]:
        """Everything that the meaning depends on."""
        return {**self.inner.texts, "bounds": "check"}

    def read(self) -> object:
        """The syntax tree."""
        return self.inner.read()

    def lower(self, types: Mapping[str, DType], ndims: Mapping[str, int], scalars: frozenset[str]) -> Program:
        """The typed program with its checks."""
        return self.checked(types, ndims, scalars)[0]

    def checked(
        self, types: Mapping[str, DType], ndims: Mapping[str, int], scalars: frozenset[str]
    ) -> tuple[Program, tuple[Site, ...]]:
        """The program, and the places that a violation names by number."""
        from fusec.passes.bounds import check_bounds

        known = {name: dtype for name, dtype in types.items() if name != FAULT}
        axes = {name: ndim for name, ndim in ndims.items() if name != FAULT}
        return check_bounds(self.inner.lower(known, axes, scalars))


def checked(kernel: Planned) -> Planned:
    """The kernel with checks; its last input is the array for the first violation."""
    inner = kernel.definition
    source = CheckedSource(replace(inner, checked=True) if isinstance(inner, PythonDefinition) else inner)
    fault = Parameter(FAULT, "uint32", UINT32, raw=True, non_const=True)
    signature = replace(kernel.signature, inputs=(*kernel.signature.inputs, fault))
    made = Planned(source, signature, reduce_dims=kernel.reduce_dims, return_tuple=True, uses_index=True, fp=kernel.fp)
    made.follows_raw = kernel.follows_raw
    return made


def run(
    kernel: Planned, args: tuple[object, ...], size: int | Shape, stream: object = None, threads: int | None = None
) -> tuple[object, ...]:
    """Run a kernel made by `checked` and return its outputs. Raises IndexOutside or AssertionFailed.

    args: without the array for faults.
    """
    nin = kernel.nin - 1
    fault: Any = np.zeros(WORDS, np.uint32)
    start = calls.run if not any(map(is_foreign, args)) else runner(args)
    if start is not calls.run:
        fault = _on_device(fault, args, stream)
    outputs = start(kernel, (*args[:nin], fault, *args[nin:]), size, stream, threads)
    words = fault if isinstance(fault, np.ndarray) else fault.numpy()
    if words[0]:
        arrays = {param.name: arg for param, arg in zip(kernel.params[:nin], args, strict=False) if not is_number(arg)}
        shapes = {name: tuple(array.shape) for name, array in arrays.items()}  # type: ignore[attr-defined]
        spec = kernel.specialisation()
        raise fault_of(kernel, words, shapes, dict(spec.types), spec.scalars)
    return outputs


def _on_device(fault: np.ndarray[Any, Any], args: tuple[object, ...], stream: object) -> object:
    """The array for faults where the other arrays are."""
    with forking.lock:
        from fusec.runtime import cuda

    handle = cuda.stream_for(args, stream)
    arrays = [cuda.describe(arg, handle) for arg in args if is_foreign(arg)]
    return cuda.from_numpy(fault, cuda.same_device(arrays), handle)


def fault_of(
    kernel: Planned,
    words: np.ndarray[Any, Any],
    shapes: Mapping[str, Shape],
    types: Mapping[str, DType],
    scalars: frozenset[str],
) -> FusecError:
    """The error that the words of FAULT say. shapes: of the arrays of the call; types: of all; scalars: the others."""
    ndims = {param.name: len(shapes.get(param.name, ())) for param in kernel.params if param.raw}
    source = kernel.definition
    assert isinstance(source, CheckedSource), "only checked kernels have faults"
    program, sites = source.checked(types, ndims, scalars)
    site = sites[int(words[0]) - 1]
    span = line_of(program, site.line)
    index = int(np.int64(np.uint64(words[1]) | np.uint64(words[2]) << np.uint64(32)))
    element = str(int(words[3]) | int(words[4]) << 32)
    if not site.array:
        return AssertionFailed(kernel.name, element).at(span)
    shape = shapes.get(site.array, (site.limit,))
    limit = shape[site.axis] if site.axes > 1 else int(np.prod(shape))
    shown = f"index {index}" if site.axes == 1 else f"index {index} along axis {site.axis}"
    return IndexOutside(kernel.name, site.array, shown, limit, element).at(span)


def line_of(program: Program, line: int) -> Span | None:
    """A line of the user's text."""
    file = program.source
    if file is None or not 0 < line <= len(file.line_starts):
        return None
    start, text = file.line_starts[line - 1], file.line(line)
    indent = len(text) - len(text.lstrip())
    return Span(file, start + indent, start + len(text.rstrip()))
