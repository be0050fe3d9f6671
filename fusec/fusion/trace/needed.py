"""What to write instead where Python asks for values of arrays, which a trace does not know."""

from __future__ import annotations

import ast
import math
import re
from itertools import pairwise

import numpy as np

from fusec.errors import FusecError
from fusec.errors.fusing import NeedsValues, NotFusable
from fusec.fusion.trace import lines
from fusec.fusion.trace.tables import FUNCTIONS, cure_for

FOR_MEMORY = re.compile(r"bytes-like object is required, not 'ndarray'|has incorrect type \(expected .*, got ndarray\)")
OUTSIDE = "call it before or after the fused function"
CURES = {
    "the bound of a slice": "pass it as a number; or choose elements: np.where(np.arange(len(x)) < bound, x, 0)",
    "a text": "return it, and print the result; x.shape and x.dtype are known",
    "an index, range or axis": "pass it as a Python number, which may be an argument of the fused function",
}
NEEDING = {
    "gradient": ("an array of coordinates", f"pass distances as numbers, or {OUTSIDE}"),
    "cov": ("an array of weights", OUTSIDE),
}  # functions of NumPy's source that branch on values of an argument
CONSTANT_WRITTEN = ("a write to a constant array", "start from np.zeros: y = np.zeros(n); y[...] = np.arange(n)")
STORED = ("making a NumPy array of it", "bool()", "int()", "float()", "complex()")  # what NumPy asks a value for
VIEWS = "make views without strides: slices, reshape, np.broadcast_to, np.lib.stride_tricks.sliding_window_view"
OF_PYTHON = {"max": "np.max", "min": "np.min", "sorted": "np.sort", "any": "np.any", "all": "np.all"}
OF_FUSEC = ("softmax", "log_softmax", "logsumexp")  # functions that fusec and SciPy have
CONVERSIONS = re.compile(r"(\w+\.)?(bool|u?int(?:8|16|32|64)|float(?:16|32|64)|complex(?:64|128))")
LONGEST = 60  # characters of the user's text that a hint repeats
BRANCH = "choose element by element: np.where(condition, a, b); or branch before or after the fused function"
LOOP = "keep the loop outside: fuse one step, and return the number that ends the loop"
CHECK = "check it before the call; or return the condition, and check the result"
TRUTH = "np.where(condition, a, b) chooses element by element, (a < x) & (x < b) combines conditions"


def refused(what: str) -> FusecError:
    """The error for an operation of Python's that asks a traced array for its values."""
    line, nodes, library = lines.here(), lines.nodes(), lines.library()
    called = _called(nodes)
    if library:
        return NotFusable(*_of_library(called, library)).at(line)
    if lines.is_within("vectorize.__call__"):
        return NotFusable("np.vectorize", cure_for("vectorize")).at(line)
    if lines.is_within("as_strided"):
        return NeedsValues("np.lib.stride_tricks.as_strided", VIEWS).at(line)
    for name, (told, cure) in NEEDING.items():
        if what == "bool()" and lines.is_within(name):
            return NeedsValues(f"np.{name} with {told}", cure).at(line)
    name = called.rpartition(".")[2]
    if what == "float()" and name != "float" and hasattr(math, name):
        cure = f"NumPy has none: a function with @fusec.elementwise applies math.{name} to every element"
        is_known = name in FUNCTIONS or isinstance(getattr(np, name, None), np.ufunc)
        return NotFusable(f"math.{name}", f"write np.{name}(x)" if is_known else cure).at(line)
    return NeedsValues(*_told(what, nodes, called)).at(line)


def _called(nodes: list[ast.AST]) -> str:
    """The function that the user's line calls just now, as it is written; "" if it calls none by a name."""
    found = ast.unparse(nodes[0].func) if nodes and isinstance(nodes[0], ast.Call) else ""
    return found if re.fullmatch(r"[\w.]+", found) else ""


def of_memory(problem: Exception) -> FusecError | None:
    """The error for a function of C code that asks a traced array for its memory; None for another problem."""
    if type(problem) is not TypeError or not FOR_MEMORY.search(str(problem)):
        return None
    line, called = lines.raised(problem)
    return NotFusable(called or "a function of C code", OUTSIDE).at(line)


def _of_library(called: str, library: str) -> tuple[str, str]:
    """What cannot be fused of an installed package, and what to do."""
    root, name = library.partition(".")[0], (called or library).rpartition(".")[2]
    shown = called if called.startswith(f"{root}.") else f"{called} of {root}" if called else library
    return shown, f"write fusec.{name}(x), or {OUTSIDE}" if name in OF_FUSEC else OUTSIDE


def _told(what: str, nodes: list[ast.AST], called: str) -> tuple[str, str]:
    """What needs values, and what to write instead."""
    match what, nodes[0] if nodes else None:
        case _, ast.Subscript(ctx=ast.Store()) | ast.Assign() | ast.AugAssign() if what in STORED:
            return CONSTANT_WRITTEN
        case "bool()", _:
            return _of_truth(nodes)
        case "making a NumPy array of it", ast.Call(args=args):
            if kind := CONVERSIONS.fullmatch(called):
                return f"{called}(x)", f'convert by a method: x.astype("{kind[2]}")'
            has_list = any(isinstance(each, (ast.List, ast.Tuple, ast.ListComp)) for each in args)
            cure = f"pass np.array([...]) in place of a list, or {OUTSIDE}" if has_list else OUTSIDE
            return f"{called}()" if called else "a function", cure
        case "a text", ast.Call(func=ast.Name(id="print")):
            return "print()", CURES[what]
        case "an index, range or axis", ast.Call(func=ast.Name(id="range")):
            return "range()", CURES[what]
        case "in", ast.Compare(left=left, comparators=[right]):
            found = _text("({}).any()", ast.Compare(right, [ast.Eq()], [left]), "(x == value).any()")
            return "'in'", f"write {found}"
    if what in ("float()", "int()", "complex()", "item()", "tolist()"):
        return what, f"leave out {what}: arrays are computed with, and returned, as they are"
    return what, CURES.get(what, "keep arrays as they are; what needs numbers comes before or after the fused function")


def _of_truth(nodes: list[ast.AST]) -> tuple[str, str]:
    """What needs one truth value, and what to write instead."""
    match nodes:
        case [ast.Call(func=ast.Name(id=name), args=[given]), *_] if name in OF_PYTHON:
            is_array = isinstance(given, (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
            found = _text(OF_PYTHON[name] + "({})", given if is_array else None, OF_PYTHON[name] + "(x)")
            return f"{name}()", f"write {found}"
        case [ast.Call(func=ast.Name(id="max" | "min" as name)), *_]:
            return f"{name}()", f"write np.{name}imum(a, b), which chooses element by element"
    told = ("bool()", TRUTH)
    for inner, outer in pairwise([*nodes[:1], *nodes]):
        match outer:
            case ast.If() | ast.IfExp() if inner in (outer, outer.test):
                return "a branch", BRANCH
            case ast.While() if inner in (outer, outer.test):
                return "the condition of a loop", LOOP
            case ast.Assert() if inner in (outer, outer.test):
                return "an assertion", CHECK
            case ast.comprehension() if inner in outer.ifs:
                return "a condition", BRANCH
            case ast.stmt() | ast.Lambda():
                break
            case ast.Compare(ops=[_, _, *_]) | ast.BoolOp() if told[1] is TRUTH:
                told = _combined(outer)
            case ast.UnaryOp(op=ast.Not(), operand=operand) if told[1] is TRUTH:
                told = "'not'", f"write {_text('np.logical_not({})', operand, 'np.logical_not(condition)')}"
    return told


def _combined(node: ast.Compare | ast.BoolOp) -> tuple[str, str]:
    """What combines conditions, and the same element by element."""
    if isinstance(node, ast.BoolOp):
        sign, parts = ("&" if isinstance(node.op, ast.And) else "|"), node.values
        shown = "'and'" if sign == "&" else "'or'"
    else:
        values, sign, shown = [node.left, *node.comparators], "&", "a chain of comparisons"
        parts = [ast.Compare(a, [op], [b]) for (a, b), op in zip(pairwise(values), node.ops, strict=True)]
    text = f" {sign} ".join(f"({ast.unparse(each)})" for each in parts)
    return shown, f"write {text if len(text) <= LONGEST else f'(a < x) {sign} (x < b)'}"


def _text(form: str, node: ast.AST | None, otherwise: str) -> str:
    """A text with part of the user's; another one if that is long."""
    found = form.format(ast.unparse(node)) if node is not None else otherwise
    return found if len(found) <= LONGEST else otherwise
