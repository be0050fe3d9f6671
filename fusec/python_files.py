"""Kernels of a Python file, found without importing or running it.

The file is parsed. Functions and classes with a decorator of fusec are kernels, and so are names at its top level that
are given ``fusec.ElementwiseKernel(...)`` of literals or ``fusec.reduction(...)`` of functions. What kernels take from
the file must be known from its text: other functions, names of NumPy, math and fusec, and constants that are numbers,
tuples of them, or arithmetic on those.
"""

from __future__ import annotations

import ast
import cmath
import math
import operator
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeGuard

import numpy as np

import fusec
from fusec import checked, decorators, random
from fusec.array_functions import Elementwise
from fusec.captures import FileFunction, Unusable, lambda_text
from fusec.errors.base import FusecError
from fusec.errors.files import BadDecorator, NoPythonKernels
from fusec.errors.python import NotPython
from fusec.explicit import Explicit, block_of
from fusec.kernels import ElementwiseKernel
from fusec.records import dataclass, field
from fusec.reductions import decorator
from fusec.reductions.functions import Reduction
from fusec.reductions.roles import ROLES
from fusec.source import SourceFile, Span
from fusec.stencils import Stencil, border_of

SPECIAL = ModuleType("scipy.special")  # stands for it: its functions are known by their names
MODULES: dict[str, ModuleType] = {
    "numpy": np, "math": math, "cmath": cmath, "fusec": fusec, "fusec.random": random, "scipy.special": SPECIAL,
}  # fmt: skip
BY_NAME = ("scipy.special", "ml_dtypes")  # what is imported from them needs no module to be known
KERNELS = {
    "elementwise": decorators.elementwise, "stencil": decorators.stencil, "kernel": decorators.kernel,
    "reduction": decorator.reduction,
}  # fmt: skip
Kernel = Elementwise | ElementwiseKernel | Reduction
BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
}  # fmt: skip
CONSTANT = "without running the file only numbers that stand in it are known, tuples of them, and arithmetic on those"
MAX_POWER = 1000
SLOW = frozenset(("factorial", "comb", "perm", "prod", "lcm", "pow"))


class _NotKnownError(Exception):
    """A value that is only known when the file runs."""


def read(path: Path) -> tuple[SourceFile, list[Kernel]]:
    """The file and its kernels in order. Raises NotPython, NoPythonKernels, BadDecorator and OSError."""
    file = SourceFile(str(path), path.read_text())
    try:
        tree = ast.parse(file.text)
    except (SyntaxError, ValueError) as problem:
        line = min(getattr(problem, "lineno", None) or 1, len(file.line_starts))
        start = file.line_starts[line - 1]
        raise NotPython(getattr(problem, "msg", str(problem))).at(Span(file, start, start + 1)) from None
    found = _File(file)
    for node in tree.body:
        found.statement(node)
    kernels = [found.kernel(node, name, call) for node, name, call in found.kernels]
    if not kernels:
        raise NoPythonKernels(str(path)).at()
    return file, kernels


@dataclass
class _File:
    """What the names of a file stand for, as far as its statements tell. kernels: where they are made."""

    file: SourceFile
    names: dict[str, object] = field(default_factory=dict)
    kernels: list[tuple[ast.stmt, str, ast.expr]] = field(default_factory=list)

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
            case ast.ClassDef(name=name, decorator_list=marks):
                self.names[name] = Unusable("a class", CONSTANT)
                self.kernels += [(node, name, mark) for mark in marks if self._made_by(mark) == "reduction"]
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                if isinstance(value, ast.Call) and self._made_by(value) in ("ElementwiseKernel", "reduction"):
                    self.kernels.append((node, name, value))
                self.names[name] = self._constant(value)
            case _:
                written = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and _is_store(each)}
                self.names |= dict.fromkeys(written, Unusable("made when the file runs", CONSTANT))

    def _import(self, each: ast.alias) -> None:
        root = each.name.partition(".")[0]
        if each.asname is None:
            self.names[root] = MODULES.get(root, Unusable(f"the module {root}", CONSTANT))
        else:
            self.names[each.asname] = MODULES.get(each.name, Unusable(f"the module {each.name}", CONSTANT))

    def _function(self, node: ast.FunctionDef) -> FileFunction:
        first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
        lines = self.file.text.split("\n")[first - 1 : node.end_lineno]
        return FileFunction(node.name, self.file.name, first, "\n".join(lines) + "\n", self.names)

    def _made_by(self, node: ast.expr) -> str:
        """The name in fusec of what a decorator or a call calls; "" for something else."""
        callee = node.func if isinstance(node, ast.Call) else node
        try:
            found = self.value(callee)
        except _NotKnownError:
            return ""
        known = {**KERNELS, "ElementwiseKernel": ElementwiseKernel}
        return next((name for name, each in known.items() if found is each), "")

    def _constant(self, node: ast.expr) -> object:
        try:
            return self.value(node)
        except _NotKnownError:
            return Unusable("made when the file runs", CONSTANT)

    def value(self, node: ast.expr) -> Any:
        """The value of an expression that is known without running anything of the file. Raises _NotKnownError."""
        try:
            return self._value(node)
        except (ArithmeticError, TypeError, ValueError, AttributeError):
            raise _NotKnownError from None

    def _value(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id="True" | "float" | "int" | "bool" | "complex" as name) if name not in self.names:
                return {"float": float, "int": int, "bool": bool, "complex": complex}[name]
            case ast.Name(id=name) if name in self.names and not isinstance(self.names[name], Unusable):
                return self.names[name]
            case ast.Lambda():
                text = lambda_text(node, self.file.text, self.file.name)
                return FileFunction(text.name, text.file, text.line, text.text, self.names, text.part)
            case ast.Tuple(elts=items):
                return tuple(self._value(item) for item in items)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._value(operand)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
                a, b = self._value(left), self._value(right)
                if isinstance(op, ast.Pow) and abs(b) > MAX_POWER:
                    raise _NotKnownError
                return BINARY[type(op)](a, b)
            case ast.Attribute(value=value, attr=name):
                owner = self._value(value)
                if isinstance(owner, ModuleType):
                    return getattr(owner, name)
            case ast.Call(func=func, args=args, keywords=[]):
                called = self._value(func)
                if _is_harmless(called):
                    return called(*map(self._value, args))
        raise _NotKnownError

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
                found |= decorator.roles_of(args[0], {}, names)[0]
        return decorator.made_of(found, identity, name, fp, names)

    def _arguments(self, made: ast.expr) -> tuple[list[Any], dict[str, Any]]:
        if not isinstance(made, ast.Call):
            return [], {}
        try:
            given = {each.arg: self.value(each.value) for each in made.keywords if each.arg is not None}
            return [self.value(arg) for arg in made.args], given
        except _NotKnownError:
            raise BadDecorator("", "its arguments are known only when the file runs").at(self._span(made)) from None

    def _span(self, node: ast.expr) -> Span:
        start = self.file.line_starts[node.lineno - 1]
        line = self.file.line(node.lineno)
        return Span(self.file, start + len(line) - len(line.lstrip()), start + len(line))


def _decorated(sort: str, origin: FileFunction, options: Mapping[str, Any]) -> Elementwise:
    """What a decorator of fusec makes of a function. Raises TypeError for options that it has not."""
    options = dict(options)
    name, fp, checks = options.pop("name", ""), options.pop("fp", "strict"), checked.wanted(options.pop("bounds", None))
    options.pop("names", None)
    if sort == "stencil":
        border = border_of(options.pop("boundary", "constant"), options.pop("cval", 0), options.pop("axes", ()))
    block = block_of(options.pop("block", None)) if sort == "kernel" else ()
    if options:
        raise TypeError(f"it has no option {next(iter(options))!r}")
    if sort == "stencil":
        return Stencil(origin, name, fp, {}, border, checks)
    if sort == "kernel":
        return Explicit(origin, name, fp, {}, checks, block)
    return Elementwise(origin, name, fp, {}, checks)


def _member(module: str, name: str) -> object:
    """What ``from module import name`` gives."""
    if module == "fusec" and name in KERNELS:
        return KERNELS[name]
    found = getattr(MODULES.get(module), name, None)
    return Unusable(f"imported from {module}", CONSTANT) if found is None else found


def _is_harmless(called: object) -> bool:
    """Whether a function only makes a number of numbers, and that soon."""
    if isinstance(called, type):
        return issubclass(called, np.generic) or called in (float, int, bool, complex)
    name = getattr(called, "__name__", "")
    return isinstance(called, np.ufunc) or (called is getattr(math, name, None) and name not in SLOW)


def _is_identity(node: ast.stmt) -> TypeGuard[ast.Assign]:
    """Whether a statement of a class gives the identity of a reduction."""
    return isinstance(node, ast.Assign) and [ast.unparse(each) for each in node.targets] == ["identity"]


def _is_store(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)
