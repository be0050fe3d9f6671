"""Kernels that check themselves at run time: indices inside their arrays, and assertions.

A checked kernel is the same one with a pass more and one more argument, an array for the first violation.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fusec.arguments.layouts import Shape
from fusec.arguments.operands import is_foreign, is_number
from fusec.arguments.signature import Parameter
from fusec.base import locks
from fusec.base.dtypes import FLOAT64, UINT32, DType, compute_type
from fusec.base.records import dataclass, replace
from fusec.base.source import Span
from fusec.compiler.lowering import lower_program
from fusec.compiler.pipeline import Source
from fusec.dispatch.elementwise import line_of
from fusec.dispatch.engine import is_on_device
from fusec.dispatch.planned import CHECKED, Planned
from fusec.dispatch.spec import CallOptions
from fusec.environment import debug, settings
from fusec.errors.base import FusecError, UserError
from fusec.errors.checks import AssertionFailed, CastLoses, IndexOutside, IntegerWraps, ItemOutside, UnknownCheck
from fusec.frontends.python.definition import PythonDefinition

if TYPE_CHECKING:
    from fusec.ir.loops import Program
    from fusec.passes.bounds import CheckSite

Bounds = Literal["check", "trust"]
Checks = str
"""What kernels look for as they run: "", "bounds", "wrap" or "bounds,wrap"."""

FAULT, WORDS = "fusec_fault", 7  # as fusec.passes.bounds has them


def wanted(bounds: object, check: object = None) -> Checks:
    """The checks of a kernel; None selects those of FUSEC_CHECK. bounds: decides about that check.

    Raises UnknownCheck, SettingNotUnderstood.
    """
    if bounds is not None and (not isinstance(bounds, str) or bounds not in ("check", "trust")):
        raise UnknownCheck("bounds=", repr(bounds)).at()
    if check is None:
        found = set(str(settings.value_of("FUSEC_CHECK") or "").split(",")) - {""}
    else:
        cure = 'it is "wrap", "bounds", "bounds,wrap", or "" for no checks'
        found = _kinds("check=", check, cure)
    if bounds is not None:
        found = found - {"bounds"} | ({"bounds"} if bounds == "check" else set())
    return ",".join(sorted(found))


def _kinds(where: str, given: object, cure: str) -> set[str]:
    """What a text names, with commas between. Raises UnknownCheck."""
    names = {each.strip() for each in given.split(",")} - {""} if isinstance(given, str) else {""}
    if not names <= set(settings.KINDS):
        raise UnknownCheck(where, repr(given), cure).at()
    return names


def with_bounds(checks: Checks) -> Checks:
    """The same checks, with those of bounds."""
    return checks if "bounds" in checks else ",".join(filter(None, ("bounds", checks)))


@dataclass(frozen=True)
class CheckedSource:
    """A definition whose programs check themselves. checks: the kinds of checks."""

    inner: Source
    checks: Checks = "bounds"

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.inner.name

    @property
    def texts(self) -> dict[str, Any]:
        """Everything that the meaning depends on."""
        return {**self.inner.texts, "checks": self.checks}

    def checked(
        self, types: Mapping[str, DType], ndims: Mapping[str, int], scalars: frozenset[str]
    ) -> tuple[Program, tuple[CheckSite, ...]]:
        """The program, and the sites to which a violation refers by number."""
        from fusec.passes.bounds import check_bounds

        known = {name: dtype for name, dtype in types.items() if name != FAULT}
        axes = {name: ndim for name, ndim in ndims.items() if name != FAULT}
        return check_bounds(lower_program(self.inner, known, axes, scalars), self.checks)


@lower_program.register(CheckedSource)
def _with_checks(
    source: CheckedSource, types: Mapping[str, DType], ndims: Mapping[str, int], scalars: frozenset[str]
) -> Program:
    return source.checked(types, ndims, scalars)[0]


def checked(kernel: Planned, checks: Checks = "bounds") -> Planned:
    """The kernel with checks; its last input is the array for the first violation."""
    debug.show(2, f"{kernel.name} has no native entry: {CHECKED}")
    inner = kernel.definition
    if isinstance(inner, PythonDefinition) and "bounds" in checks:
        inner = replace(inner, checked=True)
    source = CheckedSource(inner, checks)
    fault = Parameter(FAULT, "uint32", UINT32, raw=True, non_const=True)
    signature = replace(kernel.signature, inputs=(*kernel.signature.inputs, fault))
    made = Planned(source, signature, reduce_dims=kernel.reduce_dims, return_tuple=True, uses_index=True, fp=kernel.fp)
    made.follows_raw = kernel.follows_raw
    return made


def run(
    kernel: Planned, args: tuple[object, ...], options: CallOptions, runner: Callable[..., Any] = Planned.run
) -> tuple[object, ...]:
    """Run a kernel made by `checked` and return its outputs. Raises the error that `fault_of` makes of a violation.

    args: without the array for faults. runner: runs the call.
    """
    nin = kernel.nin - 1
    fault: Any = np.zeros(WORDS, np.uint32)
    if is_on_device(args):
        fault = _on_device(fault, args, options.stream)
    outputs: tuple[Any, ...] = runner(kernel, (*args[:nin], fault, *args[nin:]), None, options)
    words = fault if isinstance(fault, np.ndarray) else fault.numpy()
    if words[0]:
        pairs = [*zip(kernel.in_params[:nin], args, strict=False), *zip(kernel.out_params, outputs, strict=True)]
        shapes = {param.name: _shape(each) for param, each in pairs if not is_number(each)}
        raise fault_of(kernel, words, shapes, options.size)
    return outputs


def _shape(array: Any) -> Shape:
    """The shape of an array of any library, or of a list."""
    return tuple(array.shape) if hasattr(array, "shape") else np.shape(array)


def _space(kernel: Planned, shapes: Mapping[str, Shape], size: int | Shape) -> Shape:
    """The shape of what a call ran over."""
    if isinstance(size, tuple):
        return size
    return np.broadcast_shapes(
        *(shapes[param.name] for param in kernel.params if param.name in shapes and not param.raw)
    )


def _on_device(fault: np.ndarray[Any, Any], args: tuple[object, ...], stream: object) -> object:
    """The array for faults where the other arrays are."""
    with locks.lock:
        from fusec.runtime import cuda

    handle = cuda.stream_for(args, stream)
    arrays = [cuda.describe(arg, handle) for arg in args if is_foreign(arg)]
    return cuda.from_numpy(fault, cuda.same_device(arrays), handle)


def fault_of(
    kernel: Planned, words: np.ndarray[Any, Any], shapes: Mapping[str, Shape], size: int | Shape
) -> FusecError:
    """The error that the words of FAULT describe after the kernel's last call. shapes: of its arrays."""
    scalars = frozenset(param.name for param in kernel.in_params if param.name not in shapes) - {FAULT}
    ndims = {param.name: len(shapes.get(param.name, ())) for param in kernel.params if param.raw}
    source = kernel.definition
    assert isinstance(source, CheckedSource), "only checked kernels have faults"
    assert kernel.last is not None, "a call has found them"
    program, sites = source.checked(kernel.last.types, ndims, scalars)
    site = sites[int(words[0]) - 1]
    span = line_of(program, site.line)
    first, position, second = (int(words[at]) | int(words[at + 1]) << 32 for at in (1, 3, 5))
    index, element = first - (first >> 63 << 64), str(position)
    if site.op:
        space = _space(kernel, shapes, size)
        if len(space) > 1:
            element = str(tuple(map(int, np.unravel_index(position, space))))
        return loss_of(kernel.name, site, (first, second), element).at(span or _only_line(program))
    if not site.array and site.limit:
        return ItemOutside(kernel.name, index, site.limit, site.limit - 1, element).at(span)
    if not site.array:
        return AssertionFailed(kernel.name, element).at(span)
    shape = shapes.get(site.array, (site.limit,))
    limit = shape[site.axis] if site.axes > 1 else int(np.prod(shape))
    shown = f"index {index}" if site.axes == 1 else f"index {index} along axis {site.axis}"
    return IndexOutside(kernel.name, site.array, shown, limit, element).at(span)


def loss_of(kernel: str, site: CheckSite, words: tuple[int, int], element: str) -> UserError:
    """The description of a lost value at a site; words: its operands, 64 bits each."""
    from fusec.ir.arithmetic import convert

    pairs = list(zip(site.given, words, strict=False))
    values = [_number(bits, dtype) for dtype, bits in pairs]
    if site.op == "convert":
        (given,), (value,) = site.given, values
        found = convert(np.array([value], compute_type(given).numpy), site.dtype)[0]
        return CastLoses(kernel, str(value), given.name, site.dtype.name, str(found), element)
    assert all(isinstance(each, int) for each in values), "integers wrap"
    first, last = int(values[0]), int(values[-1])
    sign = SIGNS[site.op]
    shown = f"{first} {sign} {last}" if len(values) == 2 and sign != "abs" else f"{sign}({first})"
    if site.op in FUNCTIONS:
        shown = f"{sign}({first}, {last})"
    is_small = min(abs(last), abs(first - last)) <= 1 << 8 if site.op == "comb" else abs(last) <= 1 << 8
    exact = EXACT[site.op](first, last) if is_small or site.op not in ("left_shift", "pow", "comb") else None
    if site.op == "comb":
        shown += f" is {exact}," if exact is not None and not exact >> 128 else " is"
        return IntegerWraps(kernel, shown, f"stops at {(1 << site.dtype.bits - 1) - 1}", site.dtype.name, element)
    if exact is None or abs(exact) >> 128:
        return IntegerWraps(kernel, f"{shown} is", "wraps", site.dtype.name, element)
    bits = exact % (1 << site.dtype.bits)
    wrapped = bits - (bits >> (site.dtype.bits - 1) << site.dtype.bits) if site.dtype.kind == "signed" else bits
    return IntegerWraps(kernel, f"{shown} is {exact},", f"wraps to {wrapped}", site.dtype.name, element)


SIGNS = {
    "add": "+", "subtract": "-", "multiply": "*", "square": "square", "negative": "-", "absolute": "abs",
    "quotient": "/", "floor_divide": "//", "left_shift": "<<", "pow": "**", "gcd": "gcd", "lcm": "lcm", "comb": "comb",
}  # fmt: skip
FUNCTIONS = ("gcd", "lcm", "comb")  # written as calls of two arguments
EXACT: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "square": lambda value, _: value * value,
    "negative": lambda value, _: -value, "absolute": lambda value, _: abs(value), "quotient": operator.floordiv,
    "floor_divide": operator.floordiv, "left_shift": lambda value, count: value << max(count, 0), "pow": operator.pow,
    "gcd": math.gcd, "lcm": math.lcm, "comb": math.comb,
}  # fmt: skip


def _number(bits: int, dtype: DType) -> int | float:
    """An operand from what `wraps.bits_of` made of it."""
    if not dtype.is_float:
        return bits - (bits >> 63 << 64) if dtype.kind == "signed" else bits
    wide = np.float64 if dtype == FLOAT64 else np.float32
    return float(np.array([bits], np.uint64).astype(np.uint32 if wide is np.float32 else np.uint64).view(wide)[0])


def _only_line(program: Program) -> Span | None:
    """The line of a text of one line, such as an expression."""
    file = program.source
    return line_of(program, 1) if file is not None and len(file.line_starts) == 1 else None
