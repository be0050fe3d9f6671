"""Errors for text outside the grammar: Python's own parser identifies it, and a table says what to write.

The text is parsed to name what stands in it; it is never compiled or run.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from fusec.base.source import SourceFile, Span
from fusec.errors.base import FusecError
from fusec.errors.language import UnexpectedToken
from fusec.errors.python import NotInSubset, NotPython
from fusec.frontends.grammar_tables import Token

LOOP = "write a loop: for i in range(n): ..."
VALUES = "a kernel's values are numbers: keep them in variables of their own"
NODES = {  # the names of classes of ast, and what to write instead
    "Try TryStar": ("try is", "kernels raise no exceptions: test the value with if"),
    "With": ("with is", "a kernel holds no resources: do that around the call"),
    "AsyncWith": ("async with is", "a kernel holds no resources: do that around the call"),
    "Lambda": ("lambda is", "define a function with def, inside this one or beside it, and call it"),
    "ListComp": ("a list comprehension is", LOOP),
    "SetComp": ("a set comprehension is", LOOP),
    "DictComp": ("a dict comprehension is", LOOP),
    "GeneratorExp": ("a generator expression is", LOOP),
    "ClassDef": ("class is", "a kernel computes with numbers; define the class outside"),
    "AsyncFunctionDef": ("async def is", "write def: elements are computed in parallel anyway"),
    "AsyncFor": ("async for is", "write for ... in range(...)"),
    "Await": ("await is", "leave it out: a kernel waits for nothing"),
    "Yield": ("yield is", "return the value, or a tuple of several"),
    "YieldFrom": ("yield from is", "return the value, or a tuple of several"),
    "Import ImportFrom": ("import is", "import at the top of the module, and use the names here"),
    "Delete": ("del is", "leave it out: variables need not be freed"),
    "Global": ("global is", "return the value: elements run at the same time and share no variables"),
    "Nonlocal": ("nonlocal is", "return the value: elements run at the same time and share no variables"),
    "Raise": ("raise is", "return a value that marks the error, e.g. nan"),
    "JoinedStr": ("an f-string is", "write a plain text, or format the result after the call"),
    "Slice": ("a slice is", "a kernel computes one element: slice the array before the call"),
    "Starred": ("a star expression is", "write the values out"),
    "NamedExpr": ("the walrus := is", "assign in a line of its own before"),
    "Match": ("match is", "write if and elif"),
    "List": ("a list is", VALUES),
    "Dict": ("a dict is", VALUES),
    "Set": ("a set is", VALUES),
    "TypeAlias": ("a type alias is", "types are inferred at every call"),
}
TESTS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Is: ("'is' is", "compare numbers with =="),
    ast.IsNot: ("'is not' is", "compare numbers with !="),
    ast.In: ("'in' as a test is", "write x == a or x == b"),
    ast.NotIn: ("'not in' is", "write x != a and x != b"),
}
MATMUL = ("the operator @ is", "a kernel computes one element: use np.matmul on the arrays")
BY_CLASS = {name: cure for names, cure in NODES.items() for name in names.split()}
NESTED = ("a decorated function inside a function is", "leave the decorator out, or define the function outside")
ELSE = ("else after a loop is", "set a variable before break, and test it after the loop")
STARS = ("an argument with a star is", "write the arguments out")
STAR_PARAMETERS = ("a parameter with a star is", "name every parameter: a kernel has as many as it is compiled for")
STAR_TARGET = ("a star among targets is", "write a name for every value")
LIST_TARGET = ("a list as target is", "write the names without brackets: a, b = ...")
MARKERS = ("* or / among parameters is", "name every parameter; calls may use the names anyway")
TYPE_PARAMETERS = ("a type parameter is", "types are inferred at every call")
ELLIPSIS = ("... is", "a kernel computes one element: index with numbers")
ELLIPSIS_BODY = ("... as a statement is", "write what the function returns")
BYTES = ("a bytes literal is", VALUES)
REFUSALS = (
    *dict.fromkeys((*NODES.values(), *TESTS.values())),
    MATMUL, NESTED, ELSE, STARS, STAR_PARAMETERS, STAR_TARGET, LIST_TARGET, MARKERS, TYPE_PARAMETERS, ELLIPSIS,
    ELLIPSIS_BODY, BYTES,
)  # fmt: skip


def explain(file: SourceFile, token: Token | None, expected: frozenset[str], is_lambda: bool = False) -> FusecError:
    """The error for a text that the grammar has refused at a token (None for the end).

    is_lambda: it is one, so that there may be one.
    """
    tree, error = _parsed(file)
    if error is not None:
        return error
    assert tree is not None, "a text is Python or it is not"
    for node in _in_order(tree):
        if is_lambda and isinstance(node, ast.Lambda):
            is_lambda = False
            continue
        found = _name(node)
        if found is not None:
            return NotInSubset(*found).at(_span(file, node))
    if token is None:
        return NotPython("the text ends too early").at(Span(file, max(len(file.text) - 1, 0), len(file.text)))
    shown = "end of line" if token.type in ("NEWLINE", "INDENT", "DEDENT") else token.text
    if "DEF" in expected:
        what, cure = "a text of functions begins with def", "write def f(x): return ..."
    else:
        what, cure = "not allowed here", "docs/python.md shows the grammar"
    return UnexpectedToken(shown, what, cure).at(Span(file, token.start, max(token.end, token.start + 1)))


def _parsed(file: SourceFile) -> tuple[ast.AST | None, FusecError | None]:
    """Python's tree of the text, with lines and columns as in it; or the error that Python has."""
    lines = file.text.split("\n")
    first = next((line for line in lines if line.strip()), "")
    start = lines.index(first) if first else 0
    inside = first[:1] in (" ", "\t")  # a method or an inner function: a block of its own makes it one
    shifted = inside and start == 0
    if inside:
        lines[max(start - 1, 0) : start] = ["if 1:"]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in strings; Python has given them already
            tree = ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        return None, _not_python(file, problem, shifted)
    return ast.increment_lineno(tree, -1) if shifted else tree, None


def _not_python(file: SourceFile, problem: Exception, shifted: bool) -> FusecError:
    if not isinstance(problem, SyntaxError) or problem.lineno is None:
        return NotPython(str(problem) or type(problem).__name__).at(Span(file, 0, 1))
    line = min(max(problem.lineno - shifted, 1), len(file.line_starts))
    column = max((problem.offset or 1) - 1, 0)
    at = min(file.line_starts[line - 1] + column, max(len(file.text) - 1, 0))
    return NotPython(problem.msg).at(Span(file, at, at + 1))


def _in_order(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes as they stand in the text: outer before inner."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        skipped = getattr(node, "decorator_list", [])
        pending += [child for child in reversed(list(ast.iter_child_nodes(node))) if child not in skipped]


def _name(node: ast.AST) -> tuple[str, str] | None:
    """What a node is called, and what to write instead; None if the subset has it."""
    match node:
        case ast.Starred(ctx=ast.Store()):
            return STAR_TARGET
        case ast.List(ctx=ast.Store()):
            return LIST_TARGET
        case ast.Expr(value=ast.Constant(value=value)) if value is ...:
            return ELLIPSIS_BODY
        case ast.FunctionDef() if _decorated_inside(node) is not None:
            return NESTED
        case ast.FunctionDef() if getattr(node, "type_params", []):
            return TYPE_PARAMETERS
        case ast.arguments(vararg=star, kwarg=stars) if star or stars:
            return STAR_PARAMETERS
        case ast.arguments(posonlyargs=first, kwonlyargs=last) if first or last:
            return MARKERS
        case ast.keyword(arg=None):
            return STARS
        case ast.For(orelse=[_, *_]) | ast.While(orelse=[_, *_]):
            return ELSE
        case ast.Constant(value=value) if value is ...:
            return ELLIPSIS
        case ast.Constant(value=bytes()):
            return BYTES
        case ast.BinOp(op=ast.MatMult()) | ast.AugAssign(op=ast.MatMult()):
            return MATMUL
        case ast.Compare(ops=ops):
            return next((TESTS[type(op)] for op in ops if type(op) in TESTS), None)
    return BY_CLASS.get(type(node).__name__)


def _decorated_inside(node: ast.FunctionDef) -> ast.FunctionDef | None:
    inner = (child for child in ast.walk(node) if isinstance(child, ast.FunctionDef) and child is not node)
    return next((each for each in inner if each.decorator_list), None)


def _span(file: SourceFile, node: ast.AST) -> Span:
    """The place of a node; columns of Python's tree count bytes."""
    line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    if isinstance(node, ast.FunctionDef):
        inner = _decorated_inside(node) or node
        line, column = inner.lineno, inner.col_offset
    if isinstance(node, ast.arguments):
        first = next(iter([*node.posonlyargs, *filter(None, [node.vararg, node.kwarg]), *node.kwonlyargs]), None)
        line, column = (first.lineno, first.col_offset) if first else (1, 0)
    start = _offset(file, line, column)
    last, end_column = getattr(node, "end_lineno", None) or line, getattr(node, "end_col_offset", None)
    end = (
        _offset(file, last, end_column)
        if last == line and end_column is not None
        else len(file.line(line)) + file.line_starts[line - 1]
    )
    return Span(file, start, max(end, start + 1))


def _offset(file: SourceFile, line: int, column: int) -> int:
    text = file.line(line).encode()[:column].decode(errors="ignore")
    return file.line_starts[line - 1] + len(text)
