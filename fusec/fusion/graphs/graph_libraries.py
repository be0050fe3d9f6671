"""Calls of NumPy's functions by texts such as "np.sort(x0, axis=-1)", from which they are made again.

x0 is the first operand, an array; i0 would be a number of Python, and n0 one of NumPy. Functions come from the table of
those that fused functions may call: no part of a text is executed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from fusec.base.diagnostics import counted
from fusec.base.records import dataclass
from fusec.errors.graphs import GraphArguments, GraphSyntax
from fusec.fusion.functions.contractions import Contraction
from fusec.fusion.functions.libraries import (
    LibraryFunction,
    Place,
    _called,
    _called_plainly,
    _called_with,
    calls_plainly,
    filled,
    parts_of_result,
    resized,
)
from fusec.fusion.functions.products import GUFUNCS
from fusec.fusion.trace.tables import FUNCTIONS
from fusec.fusion.trace.trace_values import LibraryCall
from fusec.graphs.extents import Shape, at

FAR = 1 << 10  # no function treats extents from here on in ways of their own
CALLS = (_called, _called_plainly, _called_with)
LETTERS = {None: "x", True: "i", False: "n"}
"""What operands are called: arrays, numbers of Python, and numbers of NumPy."""

Orders = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class NumpyCall:
    """A call of a function of NumPy with some operands. numbers, orders: see `OpaqueFunction`."""

    text: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    options: Mapping[str, Any]
    numbers: Mapping[int, bool | None]
    orders: Orders | None

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        """Its results. Raises GraphArguments for other operands than the text has."""
        if len(args) != len(self.numbers):
            what = f"'{self.text}' of {counted(len(args), 'operand')}"
            raise GraphArguments(what, f"it takes {len(self.numbers)}").at()
        kinds = [self.numbers[at] for at in range(len(args))]
        wrong = next((at for at, each in enumerate(args) if kinds[at] is not None and each.ndim), None)
        if wrong is not None:
            what = f"'{self.text}' of an array with {counted(args[wrong].ndim, 'axis', 'axes')} as a number"
            raise GraphArguments(what, f"call an operand with axes x{wrong} in the text").at()
        pairs = zip(args, kinds, strict=True)
        given = [each if kind is None else each.item() if kind else each[()] for each, kind in pairs]
        return parts_of_result(self.function(*filled(self.args, given), **filled(self.options, given)))


class NumpyCalls(dict[str, Callable[..., object]]):
    """Functions by name, those of users and the calls that texts say."""

    def __missing__(self, text: str) -> Callable[..., object]:
        """The call that a text says. Raises KeyError."""
        found = read_call(text)
        if found is None:
            raise KeyError(text)
        self[text] = found
        return found


def text_of(function: Any, numbers: Sequence[bool | None], orders: Orders) -> str:
    """The text of a call of a library, as the trace has it; "" for those that texts do not say."""
    if not isinstance(function, partial):
        return ""
    if function.func not in CALLS:  # one of fusec's own kernels
        return ""
    called, *rest = function.args
    args, options = (tuple(map(Place, range(len(numbers)))), {}) if function.func is _called_plainly else rest
    if isinstance(called, Contraction):
        args = (called.left, called.right, called.result, *args)
        called = _contracted
    name = next((name for name, each in functions().items() if each.function is called), "")
    parts = [_shown(each, numbers) for each in args]
    parts += [f"{key}={_shown(each, numbers)}" for key, each in options.items()]
    text = f"{name}({', '.join(parts)})"
    if any(order != tuple(range(len(order))) for order in orders):
        text += f" in {orders!r}"
    found = read_call(text) if name else None
    is_same = found is not None and (found.args, dict(found.options)) == (tuple(args), dict(options))
    return text if is_same else ""


def open_shapes(
    call: LibraryCall, arrays: Sequence[Any], shapes: Sequence[Shape], known: Mapping[str, int]
) -> list[Shape] | None:
    """The shapes of a call's results by the extents of its operands; None if they are others.

    arrays: what operands look like in this call. known: its sizes. An extent of a result must be the same number, or
    that of the same extent of an operand, for these sizes and for others, of which each is once the greatest.
    """
    if call.again is None:
        return None
    others = [{name: FAR + at for at, name in enumerate(names)} for names in (list(known), list(known)[::-1])]
    results = []
    try:
        for sizes in (known, *others):
            seen = [
                resized(array, tuple(at(each, sizes) for each in shape))
                for array, shape in zip(arrays, shapes, strict=True)
            ]
            results.append([each.shape for each in call.again(seen)])
    except (ValueError, IndexError):  # NumPy's, of shapes that do not fit each other
        return None
    extents = {extent for shape in shapes for extent in shape}
    by_values = {tuple(at(each, sizes) for sizes in (known, *others)): each for each in extents}
    found = []
    for rows in zip(*results, strict=True):
        values = list(zip(*rows, strict=True))
        if not all(each in by_values or len(set(each)) == 1 for each in values):
            return None
        found.append(tuple(by_values.get(each, each[0]) for each in values))
    return found


def is_product(call: LibraryCall) -> bool:
    """Whether a call is np.matmul of two arrays, whose result is one in C order."""
    are_in_order = all(each.phantom.flags.c_contiguous for each in call.buffers)
    return calls_plainly(call.function, np.matmul) and len(call.operands) == 2 and are_in_order


def _shown(given: Any, numbers: Sequence[bool | None]) -> str:
    """An argument: operands by letters, what else there is as Python writes it."""
    if type(given) is Place:
        return f"{LETTERS[numbers[given.number]]}{given.number}"
    if type(given) in (tuple, list):
        inner = ", ".join(_shown(each, numbers) for each in given)
        return f"[{inner}]" if type(given) is list else f"({inner}{',' if len(given) == 1 else ''})"
    return repr(given) if type(given) in (int, float, complex, bool, str, type(None)) else "?"


def read_call(text: str) -> NumpyCall | None:
    """The call that a text says, None if it says none. Raises GraphSyntax for one that would write to an operand."""
    try:
        tree: ast.expr = ast.parse(text, mode="eval").body
        orders = None
        if isinstance(tree, ast.Compare) and len(tree.ops) == 1 and isinstance(tree.ops[0], ast.In):
            orders = ast.literal_eval(tree.comparators[0])
            tree = tree.left
        known = functions().get(ast.unparse(tree.func)) if isinstance(tree, ast.Call) else None
        if known is None or not isinstance(tree, ast.Call):
            return None
        numbers: dict[int, bool | None] = {}
        args = tuple(_argument(each, numbers) for each in tree.args)
        options = {str(each.arg): _argument(each.value, numbers) for each in tree.keywords}
    except (SyntaxError, TypeError, ValueError, KeyError, RecursionError, MemoryError):
        return None
    if numbers.keys() != set(range(len(numbers))) or not (orders is None or _are_orders(orders)):
        return None
    _check_read_only(text, known, args, options, numbers)
    return NumpyCall(text, known.function, args, options, numbers, orders)


def _check_read_only(
    text: str, known: LibraryFunction, args: Sequence[Any], options: Mapping[str, Any], numbers: Mapping[int, Any]
) -> None:
    """Refuse arrays where a function does not read operands, as in out=: it would write to them. Raises GraphSyntax."""
    others = {f"argument {at}": each for at, each in enumerate(args) if at not in known.operands}
    others |= {f"{name}=": each for name, each in options.items() if name not in known.keywords}
    for place, given in others.items():
        is_out = place == "out="  # also a number would be written to
        wrong = next((each for each in _places_in(given) if is_out or numbers[each.number] is None), None)
        if wrong is not None:
            name = f"{LETTERS[numbers[wrong.number]]}{wrong.number}"
            what = f"'{text}' has an array, {name}, as {place}, which is no operand to read"
            raise GraphSyntax(what, f"calls in graphs write to no array: write the call without {place}").at()


def _places_in(given: Any) -> list[Place]:
    """The operands in an argument."""
    if type(given) is Place:
        return [given]
    return [place for each in given for place in _places_in(each)] if type(given) in (tuple, list) else []


def _are_orders(given: Any) -> bool:
    """Whether something is an order of axes for each of some arrays."""
    return isinstance(given, tuple) and all(
        isinstance(each, tuple) and sorted(each) == list(range(len(each))) for each in given
    )


def _argument(node: ast.expr, numbers: dict[int, bool | None]) -> Any:
    """An argument of a call. Raises ValueError."""
    if isinstance(node, (ast.Tuple, ast.List)):
        parts = [_argument(each, numbers) for each in node.elts]
        return parts if isinstance(node, ast.List) else tuple(parts)
    if isinstance(node, ast.Name):
        kind, at = node.id[:1], int(node.id[1:])
        numbers[at] = {letter: kind for kind, letter in LETTERS.items()}[kind]
        return Place(at)
    return ast.literal_eval(node)


@cache
def functions() -> dict[str, LibraryFunction]:
    """The functions that texts may call, by name."""
    import fusec.fusion.functions.operations  # noqa: F401 - it fills the table

    plain = {f"np.{name}": getattr(np, name) for name in sorted(GUFUNCS)}
    found = {name: LibraryFunction(each, name, tuple(range(each.nin))) for name, each in plain.items()}
    for name, each in FUNCTIONS.items():
        inner = getattr(each, "__wrapped__", each)
        if isinstance(inner, LibraryFunction) and f"np.{name}" not in found:
            found[f"np.{name}"] = inner
    return {**found, "contracted": LibraryFunction(_contracted, "contracted", (3, 4))}


def _contracted(left: str, right: str, result: str, one: Any, other: Any) -> Any:
    """The sums of products that np.einsum makes of two operands."""
    return Contraction(left, right, result)(one, other)
