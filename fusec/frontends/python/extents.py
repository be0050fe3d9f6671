"""The number of elements of an explicit kernel: its grid, evaluated for the arrays and numbers of a call."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from fusec.base.dtypes import DType
from fusec.base.records import dataclass
from fusec.base.source import Span
from fusec.errors.base import FusecError
from fusec.errors.python import BadLoop, CannotUnpack
from fusec.frontends.python import name_usage
from fusec.frontends.python import syntax as s
from fusec.frontends.python.arithmetic import PYTHON
from fusec.frontends.python.definition import PythonDefinition
from fusec.frontends.python.grid import ONE_SHAPE, grid_loop
from fusec.frontends.python.kernel_context import KernelContext, value_of
from fusec.frontends.python.name_usage import dotted_name, last_name
from fusec.frontends.python.values import Items, Scalar, Table, Value
from fusec.ir.expr import Const

MAX_SHIFT = 4096  # bits; a shift by a number of the call could fill the memory


def _shifted(left: int, right: int) -> int:
    """A left shift. Raises OverflowError for one that no extent needs."""
    if right > MAX_SHIFT:
        raise OverflowError(f"a shift by {right} bits")
    return left << right


BINARY: dict[str, Callable[[Any, Any], Any]] = {op: PYTHON[op] for op in "+ - * / // % >> & |".split()}
BINARY["<<"] = _shifted
FUNCTIONS: dict[str, Callable[..., Any]] = {"min": min, "max": max, "abs": abs, "int": int, "len": len}
MAX_ELEMENTS = 2**63 - 1  # positions are int64
CURE = "use shapes, sizes and numbers of the call, constants, + - * // %, min, max and len"


@dataclass(frozen=True)
class Shaped:
    """An array of a call, of which only the shape is known here."""

    shape: tuple[int, ...]

    def __len__(self) -> int:
        return self.shape[0]


class _UnknownError(Exception):
    """An expression that is not known before the kernel runs."""

    def __init__(self, span: Span) -> None:
        self.span = span


class Extents:
    """The grid of a definition, parsed once. Raises BadLoop if it is not a loop over fusec.grid(...)."""

    def __init__(self, definition: PythonDefinition) -> None:
        text = definition.functions[-1]
        self.captured = dict((*text.names, *definition.constants))
        self.before, loop = grid_loop(KernelContext(definition).tree(text.key))
        call = loop.iterable
        if not isinstance(call, s.CallNode) or len(call.args) != 1:
            is_grid = isinstance(call, s.CallNode) and last_name(call.callee) == "grid"
            what = ONE_SHAPE if is_grid else "the outermost loop runs over fusec.grid(...) or range(...)"
            raise BadLoop(what, "write fusec.grid(n), or fusec.grid((rows, columns)) for several axes").at(call.span)
        self.shape = call.args[0]
        self.reads = self._reads()

    def _reads(self) -> frozenset[str]:
        """The names that the shape comes from, through the statements before the loop."""
        found = set(name_usage.names(self.shape))
        for statement in reversed(self.before):
            if isinstance(statement, s.AssignNode) and not found.isdisjoint(name_usage.assigned((statement,))):
                found |= set(name_usage.names(statement.value))
        return frozenset(found)

    def of(self, shapes: Mapping[str, tuple[int, ...]], numbers: Mapping[str, object]) -> tuple[int, ...]:
        """The shape of the grid; a negative extent is an empty one. Raises BadLoop for an invalid or too large shape.

        shapes: of the arrays of a call; numbers: its other arguments.
        """
        names: dict[str, object] = {name: Shaped(shape) for name, shape in shapes.items()}
        names |= {name: int(value) if isinstance(value, np.integer) else value for name, value in numbers.items()}
        reader = _Reader(names, self.captured)
        try:
            for statement in self.before:
                reader.run(statement)
            found = reader.value(self.shape)
            if isinstance(found, Shaped):
                raise TypeError("pass x.shape or x.size, not an array")
            parts = found if isinstance(found, tuple) else (found,)
            texts = self._texts(len(parts) if isinstance(found, tuple) else 0)
            return self._checked(tuple(max(0, _extent(part, text)) for part, text in zip(parts, texts, strict=True)))
        except FusecError:
            raise
        except _UnknownError as problem:
            what = "the grid depends on a value that is not known before the kernel runs"
            raise BadLoop(what, CURE).at(problem.span) from None
        except (TypeError, ValueError, ArithmeticError, IndexError) as problem:
            raise BadLoop(f"the grid is not a shape: {problem}", CURE).at(self.shape.span) from None

    def _texts(self, axes: int) -> tuple[str, ...]:
        """What is written for each extent; axes: how many a tuple has, 0 for a number."""
        match self.shape:
            case s.Tuple(items=items):
                return tuple(item.span.text for item in items)
            case node:
                text = node.span.text
                return tuple(f"{text}[{axis}]" for axis in range(axes)) if axes else (text,)

    def _checked(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape itself, whose extents and number of elements are below 2**63. Raises BadLoop."""
        if max((prod(shape), *shape)) > MAX_ELEMENTS:
            shown = " x ".join(map(str, shape))
            what = f"the grid {self.shape.span.text} is too large: {shown} is more than {MAX_ELEMENTS} elements"
            raise BadLoop(what, "run the kernel several times, on parts of the grid").at(self.shape.span)
        return shape


def _extent(given: object, text: str) -> int:
    """An extent as an integer. Raises TypeError for what is none."""
    try:
        return operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        what = text if text == str(given) else f"{text}, which is {given},"
        raise TypeError(f"{what} is not an integer") from None


class _Reader:
    """Evaluates statements and expressions over shapes and numbers."""

    def __init__(self, names: dict[str, object], captured: Mapping[str, tuple[Any, ...]]) -> None:
        self.names, self.captured = names, captured

    def run(self, node: s.Statement) -> None:
        """An assignment before the loop; what else stands there leaves its names unknown."""
        match node:
            case s.AssignNode(targets=targets, value=value):
                try:
                    found = self.value(value)
                except (_UnknownError, TypeError, ValueError, ArithmeticError, IndexError):
                    found = None
                for target in targets:
                    self._assign(target, found)
            case _:
                self.names |= dict.fromkeys(name_usage.assigned((node,)))

    def _assign(self, target: s.Expression, value: object) -> None:
        match target:
            case s.Name(name=name):
                self.names[name] = value
            case s.Tuple(items=items):
                known = isinstance(value, tuple)
                if known and len(value) != len(items):  # type: ignore[arg-type]
                    given = f"a tuple of {len(value)}"  # type: ignore[arg-type]
                    raise CannotUnpack(given, len(items), "write as many names as there are axes").at(target.span)
                for at, item in enumerate(items):
                    self._assign(item, value[at] if known else None)  # type: ignore[index]

    def value(self, node: s.Expression) -> Any:
        """The value of an expression. Raises _UnknownError."""
        match node:
            case s.Name(name=name) if name in self.names:
                return self._known(self.names[name], node)
            case s.Name(name=name) if name in self.captured:
                return self._constant(name, node)
            case s.Number(value=number):
                return number
            case s.Tuple(items=items):
                return tuple(self.value(item) for item in items)
            case s.Binary(op=op, left=left, right=right) if op in BINARY:
                return BINARY[op](self.value(left), self.value(right))
            case s.Prefix(op="-", operand=operand):
                return -self.value(operand)
            case s.Index(value=owner, index=index):
                items = self.value(owner)
                return items[self.value(index)] if isinstance(items, tuple) else self._known(None, node)
            case s.Attribute(value=owner, name="shape" | "size" | "ndim" as fact):
                return self._fact(self.value(owner), fact, node)
            case s.Attribute() if (dotted_name(node) or "") in self.captured:
                return self._constant(dotted_name(node) or "", node)
            case s.CallNode(callee=s.Name(name=name), args=args, keywords=()) if name in FUNCTIONS:
                return FUNCTIONS[name](*map(self.value, args))
        raise _UnknownError(node.span)

    def _known(self, found: object, node: s.Expression) -> object:
        if found is None:
            raise _UnknownError(node.span)
        return found

    def _fact(self, owner: object, fact: str, node: s.Expression) -> object:
        if not isinstance(owner, Shaped):
            raise _UnknownError(node.span)
        return {"shape": owner.shape, "size": prod(owner.shape), "ndim": len(owner.shape)}[fact]

    def _constant(self, name: str, node: s.Expression) -> object:
        found = value_of(self.captured[name], name)
        if isinstance(found, Table):
            return Shaped(found.shape)
        return self._known(_number(found) if isinstance(found, (Scalar, Items)) else None, node)


def _number(value: Value) -> object:
    """A captured number as Python has it; None for what is none."""
    match value:
        case Scalar(literal=None, expr=Const() as known, type=DType()):
            return known.value.item()
        case Scalar(literal=number):
            return number
        case Items(items=items):
            return tuple(map(_number, items))
    return None
