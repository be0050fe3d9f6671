"""Kernels of a Python file, found without importing or running it.

The file is parsed. Functions and classes with a decorator of fusec are kernels, and so are names at its top level that
are given ``fusec.ElementwiseKernel(...)`` of literals or ``fusec.reduction(...)`` of functions. What kernels take from
the file must be known from its text: other functions, names of NumPy, math and fusec, and constants that are numbers,
tuples of them, or arithmetic on those. The arithmetic is bounded in size and in steps, whatever the file says.
"""

from __future__ import annotations

import ast
import cmath
import math
import operator
import re
import tokenize
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeGuard

import numpy as np

import fusec
from fusec import random
from fusec.base.records import dataclass, field
from fusec.base.source import SourceFile, Span
from fusec.dispatch import checked
from fusec.errors.base import FusecError
from fusec.errors.python import BadDecorator, NoPythonKernels, NotPython
from fusec.frontends.capture.closure import FileFunction, Unusable, lambda_text
from fusec.frontends.python.definition import FunctionText
from fusec.kernels import decorators, reduction_decorator
from fusec.kernels.elementwise_function import Decoration, Elementwise
from fusec.kernels.elementwise_kernel import ElementwiseKernel
from fusec.kernels.grid_kernel import Explicit, block_of
from fusec.kernels.reduction_function import Reduction
from fusec.kernels.reduction_roles import ROLES
from fusec.kernels.stencil import Stencil, border_of

SPECIAL = ModuleType("scipy.special")  # stands for it: its functions are known by their names
MODULES: dict[str, ModuleType] = {
    "numpy": np, "math": math, "cmath": cmath, "fusec": fusec, "fusec.random": random, "scipy.special": SPECIAL,
}  # fmt: skip
BY_NAME = ("scipy.special", "ml_dtypes")  # what is imported from them needs no module to be known
KERNELS = {
    "elementwise": decorators.elementwise, "stencil": decorators.stencil, "kernel": decorators.kernel,
    "reduction": reduction_decorator.reduction,
}  # fmt: skip
Kernel = Elementwise | ElementwiseKernel | Reduction
BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
}  # fmt: skip
CONSTANT = "without running the file, only literal numbers, tuples of them and arithmetic on these are known"
MAX_BITS = 4096  # of an integer
MAX_TEXT = 1 << 20  # characters or bytes
MAX_ITEMS = 1 << 16  # of a tuple with all that it contains, for every place where that stands
MAX_NESTING = 32  # of tuples
MAX_WORK = 1 << 22  # of a file: steps of arithmetic, items of tuples made, characters of texts made in units of 16
NUMBERS = (bool, int, float, complex, np.number, np.bool_)
SLOW = frozenset(("factorial", "comb", "perm", "prod", "lcm", "pow"))


class NotReadableError(Exception):
    """A file that Python's tokenizer or parser cannot read for a reason other than its syntax."""


class _NotKnownError(Exception):
    """A value that is only known when the file runs."""

    def __str__(self) -> str:
        return "its arguments are known only when the file runs"


@dataclass(frozen=True)
class _TooLarge(Unusable):
    """What a name stands for whose value goes beyond the bounds; given: says which and where."""


class _BeyondError(_NotKnownError):
    """A value that goes beyond the bounds of this module."""

    def __init__(self, found: _TooLarge) -> None:
        self.found = found

    def __str__(self) -> str:
        return f"an argument is {self.found.given}"


def read(path: Path) -> tuple[SourceFile, list[Kernel]]:
    """The file and its kernels in order. Raises NotReadableError, NotPython, NoPythonKernels, BadDecorator, OSError."""
    file = SourceFile(str(path), _text(path))
    try:
        tree = ast.parse(file.text)
    except SyntaxError as problem:
        line = min(problem.lineno or 1, len(file.line_starts))
        start = file.text.find("\0") if problem.lineno is None and "\0" in file.text else file.line_starts[line - 1]
        raise NotPython(problem.msg).at(Span(file, start, start + 1)) from None
    except (RecursionError, MemoryError):
        raise NotReadableError("an expression or a block is nested too deeply for Python's parser") from None
    except ValueError as problem:
        raise NotReadableError(str(problem)) from None
    found = _File(file)
    for node in tree.body:
        found.statement(node)
    kernels = [found.kernel(node, name, call) for node, name, call in found.kernels]
    if not kernels:
        if found.fused:
            raise NoPythonKernels(str(path), run_to_trace(path, *dict.fromkeys(found.fused))).at()
        raise NoPythonKernels(str(path)).at()
    return file, kernels


def fused_in(path: Path) -> list[str]:
    """The names of the fused functions of a file; none if it cannot be read, which `read` says why."""
    try:
        found = _File(SourceFile(str(path), _text(path)))
        for node in ast.parse(found.file.text).body:
            found.statement(node)
    except (OSError, NotReadableError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return list(dict.fromkeys(found.fused))


def run_to_trace(path: Path, *names: str) -> str:
    """What to do with fused functions of a file."""
    *others, last = names
    are, traced = ("are fused functions", names[0]) if others else ("is a fused function", "it")
    listed = " and ".join(filter(None, (", ".join(others), last)))
    command = f"fusec compile {path.stem}:{names[0]} --types PARAMETER=float32"
    return f"{listed} {are}, which must run to be traced; {command} imports the module and traces {traced}"


def _text(path: Path) -> str:
    """The text in the encoding that its first bytes or lines name, as Python reads it; a byte order mark is no part."""
    try:
        with tokenize.open(path) as opened:
            return opened.read()
    except (SyntaxError, LookupError, UnicodeError) as problem:
        raise NotReadableError(str(problem)) from None


@dataclass
class _File:
    """What the names of a file stand for, as far as its statements tell. kernels: where they are made."""

    file: SourceFile
    names: dict[str, object] = field(default_factory=dict)
    kernels: list[tuple[ast.stmt, str, ast.expr]] = field(default_factory=list)
    fused: list[str] = field(default_factory=list)  # functions that fusec.fuse decorates or takes
    work: int = 0

    def statement(self, node: ast.stmt) -> None:
        """Note what a statement at the top level defines."""
        match node:
            case ast.Import(names=names):
                for each in names:
                    self._import(each)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                for each in names:
                    if module not in BY_NAME or each.asname is not None:
                        self.names[each.asname or each.name] = _member(module, each.name)
            case ast.FunctionDef(name=name, decorator_list=marks):
                self.names[name] = self._function(node)
                self.kernels += [(node, name, mark) for mark in marks if self._made_by(mark) in KERNELS]
                self.fused += [name for mark in marks if self._made_by(mark) == "fuse"]
            case ast.ClassDef(name=name, decorator_list=marks):
                self.names[name] = Unusable("a class", CONSTANT)
                self.kernels += [(node, name, mark) for mark in marks if self._made_by(mark) == "reduction"]
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                if isinstance(value, ast.Call) and self._made_by(value) in ("ElementwiseKernel", "reduction"):
                    self.kernels.append((node, name, value))
                self.fused += [name] if isinstance(value, ast.Call) and self._made_by(value) == "fuse" else []
                self.names[name] = self._constant(value)
            case _:
                written = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and _is_store(each)}
                self.names |= dict.fromkeys(written, Unusable("computed when the file runs", CONSTANT))

    def _import(self, each: ast.alias) -> None:
        root = each.name.partition(".")[0]
        if each.asname is None:
            self.names[root] = MODULES.get(root, Unusable(f"the module {root}", CONSTANT))
        else:
            self.names[each.asname] = MODULES.get(each.name, Unusable(f"the module {each.name}", CONSTANT))

    def _function(self, node: ast.FunctionDef) -> FileFunction:
        first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
        lines = self.file.text.split("\n")[first - 1 : node.end_lineno]
        text = "\n".join(lines) + "\n"
        return FileFunction(FunctionText("", node.name, self.file.name, first, text), self.names)

    def _made_by(self, node: ast.expr) -> str:
        """The name in fusec of what a decorator or a call calls; "" for something else."""
        callee = node.func if isinstance(node, ast.Call) else node
        try:
            found = self.value(callee)
        except _NotKnownError:
            return ""
        known = {**KERNELS, "ElementwiseKernel": ElementwiseKernel, "fuse": fusec.fuse}
        return next((name for name, each in known.items() if found is each), "")

    def _constant(self, node: ast.expr) -> object:
        try:
            return self.value(node)
        except _BeyondError as problem:
            return problem.found
        except _NotKnownError:
            return Unusable("computed when the file runs", CONSTANT)

    def value(self, node: ast.expr) -> Any:
        """The value of an expression that is known without running anything of the file. Raises _NotKnownError."""
        try:
            return self._value(node)
        except RecursionError:
            raise _beyond("an expression that is nested too deeply", node) from None
        except (ArithmeticError, TypeError, ValueError, AttributeError):
            raise _NotKnownError from None

    def _value(self, node: ast.expr) -> Any:
        match node:
            case ast.Name(id="True" | "float" | "int" | "bool" | "complex" as name) if name not in self.names:
                return {"float": float, "int": int, "bool": bool, "complex": complex}[name]
            case ast.Name(id=name) if name in self.names:
                return _usable(self.names[name])
            case ast.Lambda():
                return FileFunction(lambda_text(node, self.file.text, self.file.name), self.names)
            case ast.Attribute(value=value, attr=name):
                owner = self._value(value)
                if isinstance(owner, ModuleType):
                    return getattr(owner, name)
                raise _NotKnownError
        return self._bounded(self._computed(node), node)

    def _computed(self, node: ast.expr) -> Any:
        """A literal, or what arithmetic makes."""
        self._charge(1, node)
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Tuple(elts=items):
                return tuple([self._value(item) for item in items])
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._value(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
                a, b = self._operand(left), self._operand(right)
                _check(a, op, b, node)
                return BINARY[type(op)](a, b)
            case ast.Call(func=func, args=args, keywords=[]):
                called, given = self._value(func), [self._operand(arg) for arg in args]
                if _is_harmless(called, given):
                    return called(*given)
        raise _NotKnownError

    def _operand(self, node: ast.expr) -> Any:
        """A value that something is computed from, which takes as long as it is large."""
        return self._bounded(self._value(node), node)

    def _bounded(self, value: Any, node: ast.expr) -> Any:
        """The value, which is paid for. Raises _BeyondError if it is too large."""
        match value:
            case int() if value.bit_length() > MAX_BITS:
                raise _beyond(f"an integer of more than {MAX_BITS} bits", node)
            case str() | bytes():
                if len(value) > MAX_TEXT:
                    raise _beyond(f"a text of more than {MAX_TEXT} characters", node)
                self._charge(len(value) // 16, node)
            case tuple():
                self._charge(_items(value, node), node)
        return value

    def _charge(self, work: int, node: ast.expr) -> None:
        self.work += work
        if self.work > MAX_WORK:
            raise _beyond(f"more than {MAX_WORK} steps of arithmetic in a file", node)

    def kernel(self, node: ast.stmt, name: str, made: ast.expr) -> Kernel:
        """The kernel that a decorator or a call makes. Raises BadDecorator if its arguments are not literal."""
        args, options = self._arguments(made)
        try:
            if self._made_by(made) == "reduction":
                return self._reduction(node, name, args, options)
            if isinstance(node, ast.FunctionDef):
                origin = self._function(node)
                return _decorated(self._made_by(made), origin, options)
            return ElementwiseKernel(*args, **options)
        except _NotKnownError as problem:
            raise BadDecorator(name, str(problem)).at(self._span(made)) from None
        except (TypeError, AttributeError) as problem:
            if isinstance(problem, FusecError):
                raise
            raise BadDecorator(name, str(problem)).at(self._span(made)) from None

    def _reduction(self, node: ast.stmt, name: str, args: list[Any], options: dict[str, Any]) -> Reduction:
        """A reduction of a function or a class that is decorated, or of those that a call names."""
        found: dict[str, object] = {role: options.pop(role) for role in ROLES if role in options}
        identity, fp, name = options.pop("identity", None), options.pop("fp", "strict"), options.pop("name", name)
        names = options.pop("names", None)
        if options:
            raise TypeError(f"it has no option {next(iter(options))!r}")
        match node:
            case ast.FunctionDef():
                found["combine"] = self._function(node)
            case ast.ClassDef(body=body):
                inside = {each.name: self._function(each) for each in body if isinstance(each, ast.FunctionDef)}
                found |= {role: inside[role] for role in ROLES if role in inside}
                identity = next((self.value(each.value) for each in body if _is_identity(each)), identity)
            case _ if args:
                found |= reduction_decorator.roles_of(args[0], {}, names)[0]
        return reduction_decorator.made_of(found, identity, name, fp, names)

    def _arguments(self, made: ast.expr) -> tuple[list[Any], dict[str, Any]]:
        if not isinstance(made, ast.Call):
            return [], {}
        try:
            given = {each.arg: self.value(each.value) for each in made.keywords if each.arg is not None}
            return [self.value(arg) for arg in made.args], given
        except _NotKnownError as problem:
            raise BadDecorator("", str(problem)).at(self._span(made)) from None

    def _span(self, node: ast.expr) -> Span:
        start = self.file.line_starts[node.lineno - 1]
        line = self.file.line(node.lineno)
        return Span(self.file, start + len(line) - len(line.lstrip()), start + len(line))


def _decorated(sort: str, origin: FileFunction, options: Mapping[str, Any]) -> Elementwise:
    """What a decorator of fusec makes of a function. Raises TypeError for options that it has not."""
    options = dict(options)
    name, fp = options.pop("name", ""), options.pop("fp", "strict")
    checks = checked.wanted(options.pop("bounds", None), options.pop("check", None))
    options.pop("names", None)
    if sort == "stencil":
        border = border_of(options.pop("boundary", "constant"), options.pop("cval", 0), options.pop("axes", ()))
    block = block_of(options.pop("block", None)) if sort == "kernel" else ()
    if options:
        raise TypeError(f"it has no option {next(iter(options))!r}")
    made_of = Decoration(origin, name, fp, {}, checks)
    if sort == "stencil":
        return Stencil(made_of, border)
    if sort == "kernel":
        return Explicit(made_of, block)
    return Elementwise(made_of)


def _member(module: str, name: str) -> object:
    """What ``from module import name`` gives."""
    if module == "fusec" and name in KERNELS:
        return KERNELS[name]
    found = getattr(MODULES.get(module), name, None)
    return Unusable(f"imported from {module}", CONSTANT) if found is None else found


def _beyond(what: str, node: ast.expr) -> _BeyondError:
    given = f"too large to be known without running the file (line {node.lineno}: {what})"
    return _BeyondError(_TooLarge(given, "write a smaller constant, or pass it as an argument"))


def _usable(found: object) -> object:
    """What a name stands for. Raises _NotKnownError."""
    if isinstance(found, _TooLarge):
        raise _BeyondError(found)
    if isinstance(found, Unusable):
        raise _NotKnownError
    return found


def _items(value: tuple[object, ...], node: ast.expr) -> int:
    """Items, characters and words of 64 bits in a tuple, in nested ones too. Raises _BeyondError."""
    total, pending = 0, [(value, 1)]
    while pending:
        items, depth = pending.pop()
        total += len(items)
        for each in items:
            match each:
                case tuple():
                    pending.append((each, depth + 1))
                case str() | bytes():
                    total += len(each)
                case int():
                    total += each.bit_length() // 64
        if total > MAX_ITEMS:
            raise _beyond(f"a tuple of more than {MAX_ITEMS} items, nested ones included", node)
        if depth > MAX_NESTING:
            raise _beyond(f"a tuple of more than {MAX_NESTING} levels", node)
    return total


def _check(a: object, op: ast.operator, b: object, node: ast.expr) -> None:
    """Whether an operation is one of numbers, texts or tuples, and soon done. Raises _NotKnownError."""
    match a, op, b:
        case (int(), ast.Pow(), int()) if b > 0 and (a.bit_length() - 1) * b > MAX_BITS:
            raise _beyond(f"an integer of more than {MAX_BITS} bits", node)
        case (str(), ast.Mod(), _):
            # a width makes a text of any length; a star takes it from the operand
            if "*" in a or sum(map(int, re.findall(r"[0-9]+", a))) > MAX_TEXT:
                raise _beyond(f"a text of more than {MAX_TEXT} characters, or of a computed width", node)
        case (str() | bytes() | tuple(), ast.Mult(), int()) | (int(), ast.Mult(), str() | bytes() | tuple()):
            times, repeated = (a, b) if isinstance(a, int) else (b, a)
            assert isinstance(times, int)
            assert isinstance(repeated, (str, bytes, tuple))
            most = MAX_ITEMS if isinstance(repeated, tuple) else MAX_TEXT
            if times * len(repeated) > most:
                sort = (
                    "tuple of more than {} items" if isinstance(repeated, tuple) else "text of more than {} characters"
                )
                raise _beyond(f"a {sort.format(most)}", node)
        case (str(), ast.Add(), str()) | (bytes(), ast.Add(), bytes()) | (tuple(), ast.Add(), tuple()):
            pass  # twice the bound at most
        case _ if not (isinstance(a, NUMBERS) and isinstance(b, NUMBERS)) or _is_slow_in_numpy([a, b]):
            raise _NotKnownError


def _is_slow_in_numpy(values: list[Any]) -> bool:
    """Whether NumPy would compute with Python's integers, whose powers have no bound."""
    return any(isinstance(each, np.generic) for each in values) and _are_wide(values)


def _are_wide(values: list[Any]) -> bool:
    return any(isinstance(each, int) and each.bit_length() > 63 for each in values)


def _is_harmless(called: object, given: list[Any]) -> bool:
    """Whether a function only makes a number of numbers, and that soon."""
    if isinstance(called, type):
        is_number = called in (float, int, bool, complex) or issubclass(called, (np.number, np.bool_))
        return is_number and all(isinstance(each, (*NUMBERS, str)) for each in given)
    if isinstance(called, np.ufunc):
        return all(isinstance(each, NUMBERS) for each in given) and not _are_wide(given)
    name = getattr(called, "__name__", "")
    return called is getattr(math, name, None) and name not in SLOW


def _is_identity(node: ast.stmt) -> TypeGuard[ast.Assign]:
    """Whether a statement of a class gives the identity of a reduction."""
    match node:
        case ast.Assign(targets=[ast.Name(id="identity")]):
            return True
    return False


def _is_store(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)
