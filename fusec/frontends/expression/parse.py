"""Text of an expression to syntax trees: one for each reduction in it, innermost first, and one for the rest.

Nothing of a text is ever run: what the grammar has and this module does not know is refused, at its place.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from itertools import pairwise

from fusec.base.diagnostics import did_you_mean
from fusec.base.records import dataclass, replace
from fusec.base.rounding_mode import default_rounding
from fusec.base.source import SourceFile, Span
from fusec.errors.base import FusecError, UserError
from fusec.errors.fusing import BadAxis, ExpressionTooLarge, NotAnExpression, NotANumber, NoTruth
from fusec.errors.language import ArgumentCount, StrayCharacter, TooLarge, Unterminated
from fusec.errors.python import BadIndentation
from fusec.frontends.expression.functions import CONVERSIONS, KNOWN, REDUCTIONS
from fusec.frontends.grammar_tables import Token, UnexpectedSymbolError
from fusec.frontends.python import syntax as s
from fusec.frontends.python.build import PythonTreeBuilder
from fusec.frontends.python.tokens import scan

MAX_CHARACTERS = 1 << 16
MAX_TOKENS = 1 << 12  # some seconds of compilation
MAX_WORD = 400  # characters of a name or number: more digits than any float has
MAX_NESTING = 64  # of expressions; the IR bears twice as much
MAX_CALLS = 200  # of functions, each some 20 ms of compilation
MAX_REDUCTIONS = 64  # kernels that run one after the other
STATEMENTS = frozenset("KEYWORD DEF LAMBDA IF FOR WHILE RETURN PASS ASSERT BREAK CONTINUE".split())
LAYOUT = ("NEWLINE", "INDENT", "DEDENT")
LONGEST = 60  # characters of the text that a hint repeats
SIGNS = {"and": "&", "or": "|"}
PARTS = ("real", "imag")
FUNCTION_NAMES = (*KNOWN, *CONVERSIONS, *REDUCTIONS)
ALSO = {"ln": "log", "lg": "log10", "tg": "tan", "sgn": "sign", "sqr": "square"}  # what others call them
CURES = {
    "mean": "write sum(x) / n, where n is the number of elements",
    "var": "write sum((x - sum(x)/n)**2) / n, where n is the number of elements",
    "std": "write sqrt(sum((x - sum(x)/n)**2) / n), where n is the number of elements",
}
ELEMENTS = "expressions use whole arrays: slice before the call, and pass the slice under a name of its own"
STRINGS = "compare strings with NumPy, and pass the bools"
MODULES = ("np", "numpy", "math", "cmath", "xp", "fusec", "ne", "numexpr", "torch", "jnp", "cp")  # as people name them
STRING = NotANumber("a string", STRINGS)
Axes = tuple[int, ...] | None


@dataclass(frozen=True)
class ExpressionPart:
    """One kernel of an expression.

    tree: what is computed for an element. inputs: names of the caller and of parts before, sorted. op: how elements are
    combined along `axes` (None: all of them), "" if they are not. name: what later parts call the result. span: of all.
    """

    tree: s.Expression
    inputs: tuple[str, ...]
    span: Span
    name: str = ""
    op: str = ""
    axes: Axes = None


@dataclass(frozen=True)
class Parsed:
    """An expression. names: what the caller has to give, sorted. places: where each stands first. numbers: those in the
    text, without repetition.
    """

    names: tuple[str, ...]
    places: tuple[Span, ...]
    parts: tuple[ExpressionPart, ...]
    numbers: tuple[bool | int | float | complex, ...]


@lru_cache(maxsize=256)
@default_rounding()
def parse(file: SourceFile) -> Parsed:
    """The parts of a text. Raises NotAnExpression, ExpressionTooLarge, NoTruth, BadAxis and NotANumber."""
    if len(file.text) > MAX_CHARACTERS:
        raise ExpressionTooLarge(MAX_CHARACTERS, "characters").at()
    if any("\ud800" <= char <= "\udfff" for char in file.text):
        raise NotAnExpression("the text is not Unicode: it has half of a character", "decode it first").at()
    tokens = _tokens(file)
    try:
        tree: s.Expression = PythonTreeBuilder(file).parse(tokens, "expressions")
    except UnexpectedSymbolError as error:
        raise _refused(file, error.token) from None
    return _Splitter(file).parsed(tree)


# --- tokens and their errors ---------------------------------------------------------------------------------------


def _tokens(file: SourceFile) -> list[Token]:
    """The tokens of a text in which line breaks are spaces. Raises NotAnExpression and ExpressionTooLarge."""
    blank = re.sub(r"[\r\n]|\\(?=\r?\n)", " ", re.sub(r"#[^\n]*", lambda found: " " * len(found.group()), file.text))
    try:
        tokens = scan(SourceFile(file.name, blank), PythonTreeBuilder.tables().words)
        found = [token for token in tokens if token.type not in LAYOUT]
    except FusecError as problem:
        raise _illegible(file, problem) from None
    if len(found) > MAX_TOKENS:
        raise ExpressionTooLarge(MAX_TOKENS, "tokens").at(_span(file, found[MAX_TOKENS]))
    if not found:
        raise NotAnExpression("the expression is empty", "write one, e.g. 'a + b'").at()
    depth = 0
    for token in found:
        if len(token.text) > MAX_WORD:
            raise ExpressionTooLarge(MAX_WORD, "characters in a name or number").at()
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        if depth > MAX_NESTING:
            raise ExpressionTooLarge(MAX_NESTING, "nested brackets").at(_span(file, token))
    return found


def _illegible(file: SourceFile, problem: FusecError) -> FusecError:
    """The error for characters that make no token."""
    span = None if problem.span is None else Span(file, problem.span.start, problem.span.end)
    match problem.error:
        case Unterminated():
            return NotANumber("a string that does not end", "remove it").at(span)
        case StrayCharacter(char=char):
            shown = repr(char) if char.isprintable() else f"character {ord(char):#x}"
            return NotAnExpression(f"{shown} has no meaning in an expression", "remove it").at(span)
        case TooLarge(limit=limit, what=what):
            return ExpressionTooLarge(limit, what).at(span)
        case BadIndentation():
            raise AssertionError("the text is one line")
    return problem


def _span(file: SourceFile, token: Token) -> Span:
    return Span(file, token.start, max(token.end, token.start + 1))


def _refused(file: SourceFile, token: Token | None) -> FusecError:
    """The error for a token that the grammar does not allow where it stands (None: the end)."""
    if token is None:
        last = len(file.text.rstrip()) or 1
        end = Span(file, last - 1, last)
        return NotAnExpression("the expression ends too early", "complete the expression").at(end)
    if token.type == "OPERATOR" and token.text[-1] in "'\"":
        return STRING.at(_span(file, token))
    cure = "an expression has operators, brackets, names, numbers and calls of known functions"
    if token.text in (":", "[", "]"):
        cure = ELEMENTS
    if token.text == "=":
        cure = "write == to compare; to keep the result, assign what evaluate returns"
    if token.type in STATEMENTS:
        cure = f"'{token.text}' is a keyword of Python, not a name"
    return NotAnExpression(f"unexpected '{token.text}'", cure).at(_span(file, token))


# --- trees -----------------------------------------------------------------------------------------------------------


class _Splitter:
    """Checks a tree and takes it apart."""

    def __init__(self, file: SourceFile) -> None:
        self.file = file
        self.text = unicodedata.normalize("NFKC", file.text)
        self.parts: list[ExpressionPart] = []
        self.scopes: list[set[str]] = [set()]  # names that each part reads, the innermost last
        self.numbers: dict[str, bool | int | float | complex] = {}  # by how they are written: 1 is not 1.0
        self.places: dict[str, Span] = {}
        self.depth = self.calls = 0

    def parsed(self, tree: s.Expression) -> Parsed:
        """All parts. Raises what is wrong with them."""
        rest = self.walk(tree)
        if not (self.parts and isinstance(rest, s.Name) and rest.name == self.parts[-1].name):
            self.parts.append(ExpressionPart(rest, tuple(sorted(self.scopes[0])), tree.span))
        made = {part.name for part in self.parts}
        names = tuple(sorted({name for part in self.parts for name in part.inputs} - made))
        places = tuple(self.places[name] for name in names)
        return Parsed(names, places, tuple(self.parts), tuple(self.numbers.values()))

    def walk(self, node: s.Expression) -> s.Expression:
        """The tree with names in place of reductions."""
        if isinstance(node, s.Binary):
            return self._chain(node)
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise ExpressionTooLarge(MAX_NESTING, "nested expressions").at(node.span)
        found = self._walk(node)
        self.depth -= 1
        return found

    def _chain(self, node: s.Binary) -> s.Expression:
        """Operators side by side, however many: they are no nesting."""
        chain: list[s.Binary] = []
        left: s.Expression = node
        while isinstance(left, s.Binary):
            chain.append(left)
            left = left.left
        left = self.walk(left)
        for each in reversed(chain):
            self.depth += 1
            left = replace(each, left=left, right=self.walk(each.right))
            self.depth -= 1
        return left

    def _walk(self, node: s.Expression) -> s.Expression:
        match node:
            case s.Name(name=name):
                return self._name(unicodedata.normalize("NFKC", name), node.span)
            case s.Number(value=value):
                self.numbers[repr(value)] = value
                return node
            case s.Constant(value=bool() as truth):
                self.numbers[repr(truth)] = truth
                return node
            case s.Prefix(op="not"):
                raise NoTruth("'not'", "write ~(x)").at(node.span)
            case s.Prefix(operand=operand):
                return replace(node, operand=self.walk(operand))
            case s.Compare():
                return self._comparison(node)
            case s.CallNode():
                return self._call(node)
            case s.Attribute():
                return self._part_of(node)
            case s.Binary():
                return self._chain(node)
            case _:
                raise _not_known(node).at(node.span)

    def _name(self, name: str, span: Span) -> s.Name:
        if name.startswith("__"):
            raise NotAnExpression(
                f"'{name}' is not available in expressions", "names begin with at most one underscore"
            ).at(span)
        self.scopes[-1].add(name)
        self.places.setdefault(name, span)
        return s.Name(span, name)

    def _comparison(self, node: s.Compare) -> s.Compare:
        if len(node.rest) > 1:
            raise _no_truth(node).at(node.span)
        ((op, other),) = node.rest
        return replace(node, first=self.walk(node.first), rest=((op, self.walk(other)),))

    def _part_of(self, node: s.Attribute) -> s.Attribute:
        if unicodedata.normalize("NFKC", node.name) not in PARTS:
            what = f"attribute '{node.name}' is not available in an expression"
            raise NotAnExpression(what, "only .real and .imag are available").at(node.span)
        return replace(node, value=self.walk(node.value), name=unicodedata.normalize("NFKC", node.name))

    # --- calls ---

    def _call(self, node: s.CallNode) -> s.Expression:
        if not isinstance(node.callee, s.Name):
            what = "only the functions that fusec knows can be called, by name"
            raise NotAnExpression(what, _plain_call(node)).at(node.span)
        name = unicodedata.normalize("NFKC", node.callee.name)
        if name in REDUCTIONS:
            return self._reduction(name, node)
        if name == "contains":
            raise NotANumber("contains() is for strings", STRINGS).at(node.span)
        if name not in KNOWN and name not in CONVERSIONS:
            raise NotAnExpression(f"unknown function '{name}'", _known_instead(name)).at(node.callee.span)
        self.calls += 1
        if self.calls > MAX_CALLS:
            raise ExpressionTooLarge(MAX_CALLS, "functions").at(node.span)
        for keyword in node.keywords:
            raise NotAnExpression(f"{name}() takes no '{keyword.name}='", "pass arguments by position").at(keyword.span)
        return replace(node, callee=s.Name(node.callee.span, name), args=tuple(map(self.walk, node.args)))

    def _reduction(self, name: str, node: s.CallNode) -> s.Name:
        """The name of what a reduction gives, which becomes a part of its own."""
        axes = self._axes(name, node)
        self.scopes.append(set())
        tree = self.walk(node.args[0])
        inputs = tuple(sorted(self.scopes.pop()))
        if len(self.parts) == MAX_REDUCTIONS:
            raise ExpressionTooLarge(MAX_REDUCTIONS, "reductions").at(node.span)
        made = f"{name}{len(self.parts) + 1}"
        while made in self.text:
            made += "_"
        self.parts.append(ExpressionPart(tree, inputs, node.span, made, name, axes))
        self.scopes[-1].add(made)
        return s.Name(node.span, made)

    def _axes(self, name: str, node: s.CallNode) -> Axes:
        """What ``axis=`` says. Raises BadAxis and NotAnExpression."""
        given = [*node.args[1:], *(each.value for each in node.keywords if each.name == "axis")]
        for keyword in node.keywords:
            if keyword.name != "axis":
                raise NotAnExpression(f"{name}() takes no '{keyword.name}='", "it takes axis=").at(keyword.span)
        if not node.args or len(given) > 1:
            count = len(node.args) + len(node.keywords)
            raise ArgumentCount(name, "1", count, f"{name}(x, axis=0)").at(node.span)
        if not given or (isinstance(given[0], s.Constant) and given[0].value is None):
            return None
        items = given[0].items if isinstance(given[0], s.Tuple) else (given[0],)
        axes = tuple(_axis(item) for item in items)
        if len(set(axes)) < len(axes):
            raise BadAxis("an axis is given twice", "write each once").at(given[0].span)
        return axes


def _known_instead(name: str) -> str:
    """The cure for a function that expressions do not know."""
    near = f"did you mean '{ALSO[name]}'?" if name in ALSO else did_you_mean(name, FUNCTION_NAMES)
    return CURES.get(name) or near or "docs/evaluate.md and docs/python.md list the functions"


def _plain_call(node: s.CallNode) -> str:
    """The cure for a call of what is no name: methods and the functions of modules have plain names here."""
    if not isinstance(node.callee, s.Attribute):
        return "e.g. sin(x)"
    name, owner = unicodedata.normalize("NFKC", node.callee.name), _text(node.callee.value)
    if name not in FUNCTION_NAMES:
        return _known_instead(name)
    args = [*map(_text, node.args), *(f"{each.name}={_text(each.value)}" for each in node.keywords)]
    args = args if owner.partition(".")[0] in MODULES else [owner, *args]
    text = f"{name}({', '.join(args)})"
    return f"write {text if len(text) <= LONGEST else f'{name}(x)'}"


def _axis(node: s.Expression) -> int:
    match node:
        case s.Number(value=int() as axis):
            return axis
        case s.Prefix(op="-", operand=s.Number(value=int() as axis)):
            cure = "negative axes are not supported: count from 0"
            raise BadAxis(f"axis -{axis} counts from the end", cure).at(node.span)
    raise BadAxis("an axis must be a number in the expression", "write axis=0, axis=(0, 1) or axis=None").at(node.span)


def _no_truth(node: s.Compare | s.Junction) -> NoTruth:
    """The error for conditions that Python would combine for all elements together."""
    what, sign = ("a chain of comparisons", "&") if isinstance(node, s.Compare) else (f"'{node.op}'", SIGNS[node.op])
    text = _by_element(node)
    return NoTruth(what, f"write {text if len(text) <= LONGEST else f'(a < x) {sign} (x < b)'}")


def _by_element(node: s.Expression) -> str:
    """The text of a condition whose parts are combined element by element."""
    match node:
        case s.Compare(first=first, rest=[_, _, *_] as rest):
            pairs = pairwise([("", first), *rest])
            return " & ".join(f"({_text(left)} {op} {_text(right)})" for (_, left), (op, right) in pairs)
        case s.Junction(op=op):
            parts: list[s.Expression] = []
            left: s.Expression = node
            while isinstance(left, s.Junction) and left.op == op:
                parts.append(left.right)
                left = left.left
            return f" {SIGNS[op]} ".join(f"({_by_element(each)})" for each in (left, *parts[::-1]))
    return _text(node)


def _text(node: s.Expression) -> str:
    """The user's text of an operand, in one line."""
    text = node.span.file.text[node.span.start : node.span.end]
    return " ".join(re.sub(r"#[^\n]*|\\(?=\r?\n)", " ", text).split())


def _not_known(node: s.Expression) -> UserError:
    """What Python has and expressions have not."""
    match node:
        case s.Junction():
            return _no_truth(node)
        case s.Choose():
            return NoTruth("'if ... else'", "write where(condition, x, y)")
        case s.String():
            return STRING
        case s.Index():
            return NotAnExpression("an expression has no indices", ELEMENTS)
        case s.Tuple():
            return NotAnExpression("a tuple is not a value", "evaluate one expression at a time")
        case s.Constant():
            return NotAnExpression("None is not a value", "it only stands for all axes: sum(x, axis=None)")
    raise AssertionError(f"{type(node).__name__} is known")
