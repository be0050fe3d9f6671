# ruff: noqa: D102 - the methods are the rules of the grammar, which graph.lark explains
"""The text of a graph of arrays to the graph; every operation is checked as those of a program are."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from fusec.base.diagnostics import counted, did_you_mean
from fusec.base.dtypes import BOOL, BY_NAME, DType
from fusec.base.ops import TABLE
from fusec.base.source import SourceFile, Span
from fusec.errors.base import FusecError
from fusec.errors.graphs import GraphShapes, GraphSyntax, GraphTypes
from fusec.errors.python import NumberTooLarge
from fusec.frontends.build import Children, SyntaxBuilder
from fusec.frontends.grammar_tables import Token, UnexpectedSymbolError
from fusec.graphs import rules
from fusec.graphs.extents import Extent, Size, size
from fusec.graphs.nodes import ArrayGraph, ArrayInput
from fusec.graphs.text import quoted
from fusec.ir.expr import Const, Expr, const

SCANNER = re.compile(
    r"(?P<SPACE>\s+)|(?P<LABEL>%[0-9]+)|(?P<NUMBER>0x[0-9a-f]+|[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?)"
    r'|(?P<NAME>[^\W\d]\w*|"[^"\\\n]*(?:\\.[^"\\\n]*)*")|(?P<OPERATOR>//|.)'
)
CURE = "docs/graphs.md defines the text of a graph"
Made = TypeVar("Made")
WITH_NAMES = "outputs are values with names: write %1 = {}(x), and return o = %1"


def parse_arrays(text: str, functions: Mapping[str, Callable[..., object]] | None = None) -> ArrayGraph:
    """The graph of a printed text. functions: those that it calls, by name. Raises GraphSyntax, at its place."""
    file = SourceFile("graph", text)
    builder = GraphTextBuilder(file, {} if functions is None else functions)
    try:
        graph: ArrayGraph = builder.parse(builder.scanned(), "graph")
    except UnexpectedSymbolError as problem:
        end = len(text.rstrip())
        span = Span(file, max(end - 1, 0), end) if problem.token is None else builder._at(problem.token)
        what = "the text ends too early" if problem.token is None else f"unexpected '{problem.token.text}'"
        raise GraphSyntax(what, CURE).at(span) from None
    return graph


def extent_of(text: str) -> Size:
    """The extent that a text such as "2*n + 1" says. Raises GraphShapes."""
    if text.isidentifier() and text.isascii():
        return size(text)
    try:
        ((found,),) = [
            each.shape for each in parse_arrays(f"graph g(x: bool[{quoted(text)}]) {{ return x = x }}").inputs
        ]
    except (FusecError, ValueError):
        cure = "extents are integers, names such as 'n', or made of these, such as '2*n + 1'"
        raise GraphShapes(f"the extent {text!r}", cure).at() from None
    return found


def one(args: list[Expr]) -> Expr:
    """The only operand. Raises GraphSyntax."""
    if len(args) != 1:
        raise GraphSyntax(f"{counted(len(args), 'operand')} where one belongs", CURE).at()
    return args[0]


def viewing(rule: Callable[[Expr, Any], Expr]) -> Callable[[GraphTextBuilder, Children], Expr]:
    """The method of a grammar's rule for a view of one operand."""

    def build(builder: GraphTextBuilder, children: Children) -> Expr:
        args, form = children
        return builder.checked(None, lambda: rule(one(args), form))

    return build


class GraphTextBuilder(SyntaxBuilder):
    """Makes the values of one text."""

    grammar = "graph"

    def __init__(self, file: SourceFile, functions: Mapping[str, Callable[..., object]]) -> None:
        super().__init__(file)
        self.functions = functions
        self.values: dict[str, Expr] = {}  # by name or label
        self.called: set[str] = set()

    def scanned(self) -> list[Token]:
        """The tokens of the text."""
        words, found = self.tables().words, []
        for match in SCANNER.finditer(self.file.text):
            kind, text = match.lastgroup or "", match.group()
            if kind == "SPACE":
                continue
            if kind == "OPERATOR" and text not in words:
                raise GraphSyntax(f"unexpected {text!r}", CURE).at(Span(self.file, match.start(), match.end()))
            if kind == "NAME" and text[0] == '"':
                try:
                    text = json.loads(text)
                except ValueError:
                    raise GraphSyntax(f"{text} is no name", CURE).at(Span(self.file, *match.span())) from None
                found.append(Token("NAME", text, *match.span()))
                continue
            found.append(Token(words.get(text, kind), text, *match.span()))
        return found

    # --- the whole -----------------------------------------------------------------------------------------------

    def graph(self, children: Children) -> ArrayGraph:
        name, *parts = [each for each in children if each is not None]
        inputs = tuple(each for each in parts if isinstance(each, ArrayInput))
        outputs = tuple(each for each in parts if isinstance(each, tuple) and not isinstance(each, Token))
        used = {each: self.functions[each] for each in self.called}
        return ArrayGraph(name.text, inputs, outputs, used)

    def input(self, children: Children) -> ArrayInput:
        name, dtype, extents, donated = children
        if name.text in self.values:
            raise GraphSyntax(f"there are two inputs called '{name.text}'", "rename one").at(self._at(name))
        negative = next((each for each in extents if isinstance(each, int) and each < 0), None)
        if negative is not None:
            cure = "extents are integers, names such as 'n', or made of these"
            raise GraphShapes(f"the extent {negative}", cure).at(self._at(name))
        made = ArrayInput(name.text, self.dtype(dtype), extents, donated is not None)
        self.values[name.text] = made
        return made

    def output(self, children: Children) -> tuple[str, Expr]:
        name, value = children
        return name.text, value

    def line(self, children: Children) -> None:
        label, value = children
        if label.text in self.values:
            raise GraphSyntax(f"{label.text} is defined twice", "count labels up").at(self._at(label))
        self.values[label.text] = value

    # --- operations ----------------------------------------------------------------------------------------------

    def mapped(self, children: Children) -> Expr:
        op, args, target = children
        dtype = None if target is None else self.dtype(target)
        if op.text == "matmul" and len(args) == 2 and dtype is None:
            return self.checked(op, lambda: rules.multiplied(*args))
        return self.checked(op, lambda: rules.mapped(op.text, args, dtype))

    sliced, transposed = viewing(rules.sliced), viewing(rules.transposed)
    reshaped, broadcast = viewing(rules.reshaped), viewing(rules.broadcast)

    def folded(self, children: Children) -> Expr:
        op, args, axes = children
        return self.checked(op, lambda: rules.folded(op.text, one(args), axes))

    def accumulated(self, children: Children) -> Expr:
        op, args, axis = children
        return self.checked(op, lambda: rules.accumulated(op.text, one(args), self.single(axis)))

    def updated(self, children: Children) -> Expr:
        args, index = children
        if len(args) != 2:
            raise GraphSyntax("update takes an array and its new part", CURE).at()
        return self.checked(None, lambda: rules.updated(args[0], args[1], index))

    def strided(self, children: Children) -> Expr:
        args, (starts, steps, shape) = children
        return self.checked(None, lambda: rules.strided(one(args), starts, steps, shape))

    def positions(self, children: Children) -> Expr:
        axis, shape = children
        return self.checked(None, lambda: rules.positions(self.single(axis), shape))

    def bounded(self, children: Children) -> Expr:
        args, extents, axis = children
        if len(extents) != 1:
            raise GraphSyntax("indices are of one axis", CURE).at()
        return self.checked(None, lambda: rules.bounded(one(args), extents[0], self.single(axis)))

    def literal(self, children: Children) -> Expr:
        elements, shape = children
        return self.checked(None, lambda: rules.literal(elements, shape))

    def packed(self, children: Children) -> Expr:
        dtype, data, shape = children
        try:
            found = base64.b64decode(data.text, validate=True)
        except ValueError:
            raise GraphSyntax("the bytes of an array are no base64", CURE).at(self._at(data)) from None
        kind = self.dtype(dtype)
        return self.checked(dtype, lambda: rules.literal_of(found, kind, shape))

    def inside(self, children: Children) -> Expr:
        return rules.inside(children[0])

    def near(self, children: Children) -> Expr:
        minus, number, axis, mode = children
        offset, along = self.integer([number]), self.integer([axis])
        return self.checked(mode, lambda: rules.near(along, -offset if minus else offset, mode.text))

    def taken(self, children: Children) -> Expr:
        value, *index, shape, outside = children
        return self.checked(None, lambda: rules.taken(value, index, shape, outside))

    def single(self, given: tuple[Size, ...]) -> int:
        """The only integer of a list. Raises GraphSyntax."""
        if len(given) != 1 or not isinstance(given[0], int):
            raise GraphSyntax("one integer belongs here", CURE).at()
        return given[0]

    def called_(self, children: Children) -> Expr:
        name, args, *kinds, at = children
        try:
            self.checked(name, lambda: self.functions[name.text])
        except KeyError:
            cure = "pass it in functions={'" + name.text + "': ...}"
            raise GraphSyntax(f"the function '{name.text}' is not given", cure).at(self._at(name)) from None
        self.called.add(name.text)
        results = rules.called(name.text, args, kinds)
        number = self.integer([at])
        if number >= len(results):
            raise GraphSyntax(f"'{name.text}' has no result {number}", CURE).at(self._at(at))
        return results[number]

    def kind(self, children: Children) -> tuple[DType, tuple[Size, ...]]:
        dtype, extents = children
        return self.dtype(dtype), extents

    def checked(self, at: Token | None, make: Callable[[], Made]) -> Made:
        """What is made, or why it cannot be, at its place in the text."""
        try:
            return make()
        except FusecError as problem:
            if isinstance(problem.error, (GraphShapes, GraphTypes, GraphSyntax, NumberTooLarge)) and at is not None:
                raise problem.error.at(self._at(at)) from None
            raise

    def part(self, children: Children) -> rules.Index:
        starts, steps, extents = children
        return starts, steps, extents

    def arguments(self, children: Children) -> list[Expr]:
        return [each for each in children if each is not None]

    def dtype(self, name: Token) -> DType:
        """A dtype by name. Raises GraphSyntax."""
        found = BY_NAME.get(name.text)
        if found is None:
            is_op = name.text in TABLE
            cure = WITH_NAMES.format(name.text) if is_op else did_you_mean(name.text, BY_NAME) or CURE
            raise GraphSyntax(f"there is no dtype '{name.text}'", cure).at(self._at(name))
        return found

    # --- operands ------------------------------------------------------------------------------------------------

    def label(self, children: Children) -> Expr:
        (name,) = children
        found = self.values.get(name.text)
        if found is None:
            raise GraphSyntax(f"{name.text} is not defined here", "define a value before it is used").at(self._at(name))
        return found

    name = label

    def true(self, _: Children) -> Const:
        return const(True, BOOL)

    def false(self, _: Children) -> Const:
        return const(False, BOOL)

    def constant(self, children: Children) -> Const:
        kind, minus, number = children
        dtype, text = self.dtype(kind), number.text
        are_bits = text[:2] == "0x"
        try:
            value = int(text, 16) if are_bits else int(text) if dtype.is_integer else float(text)
        except ValueError:
            raise GraphSyntax(f"{text} is no {dtype}", CURE).at(self._at(number)) from None
        width = 1 if dtype == BOOL else dtype.bits
        if are_bits and (minus or value >= 1 << width):
            what = f"{'-' if minus else ''}{text} as the bits of {dtype}"
            raise GraphSyntax(what, f"{dtype} has {counted(width, 'bit')}").at(self._at(number))
        if are_bits:
            return Const(int(value), dtype)
        return self.checked(number, lambda: rules.constant(-value if minus else value, dtype))

    def size(self, children: Children) -> Expr:
        return rules.number_of(children[0])

    # --- extents -------------------------------------------------------------------------------------------------

    def extents(self, children: Children) -> tuple[Size, ...]:
        return tuple(each for each in children if each is not None)

    def negative(self, children: Children) -> Size:
        return children[1] * -1  # type: ignore[no-any-return]

    def plus(self, children: Children) -> Size:
        return children[0] + children[2]  # type: ignore[no-any-return]

    def minus(self, children: Children) -> Size:
        return children[0] - children[2]  # type: ignore[no-any-return]

    def times(self, children: Children) -> Size:
        return children[0] * children[1]  # type: ignore[no-any-return]

    def quotient(self, children: Children) -> Size:
        divisor = self.integer(children[1:])
        if divisor == 0:
            raise GraphSyntax("an extent divided by 0", "divide by a positive integer").at(self._at(children[1]))
        return children[0] // divisor  # type: ignore[no-any-return]

    def integer(self, children: Children) -> int:
        (number,) = children
        if not number.text.isdigit():
            raise GraphSyntax(f"{number.text} is no integer", CURE).at(self._at(number))
        return int(number.text)

    def extent_name(self, children: Children) -> Extent:
        return size(children[0].text)
