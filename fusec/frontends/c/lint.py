"""Mistakes in a kernel text for all types: unknown names, hidden parameters, statements without effect."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fusec.base.records import dataclass
from fusec.errors.language import HidesParameter
from fusec.frontends.c import literals
from fusec.frontends.c import syntax as s
from fusec.frontends.c.c_types import VECTORS
from fusec.frontends.c.effects import ATOMICS, THROUGH_POINTERS
from fusec.frontends.c.functions import BUILTINS
from fusec.frontends.c.params import ParamDecl
from fusec.frontends.c.unknown_names import MODULES, unknown_function, unknown_member, unknown_name
from fusec.frontends.c.warnings import PARTS, Functions, check_effect, comma_index, is_power, power

EFFECTFUL = frozenset({*ATOMICS, *THROUGH_POINTERS, *(f"{name}f" for name in THROUGH_POINTERS)})
FUNCTIONS = EFFECTFUL | BUILTINS.keys() | {"nan", "nanf", "__ldg"} | {f"make_{name}" for name in VECTORS}
NAMES = literals.CONSTANTS.keys() | {"NULL"}
FLAT = frozenset({"i", "n", "_ind"})

CLOSE = object()  # on the stack: the innermost scope ends here


@dataclass(frozen=True)
class KnownNames:
    """The names that a text can use."""

    inputs: tuple[ParamDecl, ...] = ()
    outputs: tuple[ParamDecl, ...] = ()
    further: frozenset[str] = frozenset()  # names that are known besides parameters and constants, also in functions
    flat: frozenset[str] = FLAT  # names of the element's place in flat order


def review(names: KnownNames, declarations: tuple[s.External, ...], trees: tuple[s.Body, ...]) -> None:
    """Check the texts of a kernel - loop_prep, operation, after_loop - and the plain functions that they call.

    What only a template's arguments or the choice of an overload decide is left to the lowering.
    Raises UnknownName, UnknownFunction, HidesParameter, NoEffect or BadIndex.
    """
    functions: dict[str, list[s.FunctionDef]] = {}
    constants: set[str] = set()
    for item in declarations:
        if isinstance(item, s.FunctionDef) and item.body is not None:
            functions.setdefault(item.name, []).append(item)
        elif isinstance(item, s.Declaration):
            constants |= {each.name for each in item.declarators}
        elif isinstance(item, s.EnumDef):
            constants |= _enumerators(item)
        elif isinstance(item, s.StructDef):
            constants |= _constants(item)
            functions.update(_statics(item))
    found = _Review(names, functions, constants | names.further)
    prepared, operation, after = trees
    found.walk(prepared)
    found.scopes.append(set())
    found.walk(operation)
    found.scopes.pop()
    found.walk(after)
    found.called_functions()


def _enumerators(item: s.EnumDef) -> set[str]:
    """The names that an enumeration declares."""
    names = {name for name, _, _ in item.values}
    scoped = {f"{item.name}::{name}" for name in names}
    return scoped if item.scoped else names | scoped


def _constants(item: s.StructDef) -> set[str]:
    """The constants of a struct, as they are written outside."""
    found: set[str] = set()
    for each in item.members:
        match each:
            case s.EnumDef():
                found |= _enumerators(each) | {f"{item.name}::{name}" for name in _enumerators(each)}
            case s.Fields(type=kind, declarators=declarators) if "static" in kind.qualifiers:
                found |= {f"{item.name}::{declarator.name}" for declarator in declarators}
            case s.StructDef():
                found |= _constants(each)
    return found


def _statics(item: s.StructDef) -> dict[str, list[s.FunctionDef]]:
    """The static functions of a struct, of which only the lowering knows what their names mean."""
    functions = [each for each in item.members if isinstance(each, s.FunctionDef) and each.body is not None]
    own = [each for each in functions if each.initials is None and "static" in each.result.qualifiers]
    return {f"{item.name}::{each.name}": [each, each] for each in own}


class _Review:
    """The names in force while texts are walked with a stack, since nothing bounds their nesting yet."""

    def __init__(self, names: KnownNames, functions: Functions, constants: set[str]) -> None:
        self.functions, self.constants = functions, constants
        self.roles = {param.name: "an input" for param in names.inputs}
        self.roles |= {param.name: "an output" for param in names.outputs}
        self.raw = {param.name for param in names.inputs + names.outputs if param.raw}
        known = {*self.roles, *names.flat, *(f"_raw_{name}" for name in self.roles)} | constants
        self.scopes: list[set[str]] = [known, set()]
        self.called: list[str] = []

    def walk(self, nodes: Iterable[s.Node]) -> None:
        """Check statements in the innermost scope."""
        outer = len(self.scopes)
        pending: list[Any] = [*nodes][::-1]
        while pending:
            node = pending.pop()
            kind = type(node)
            if kind is s.Name:
                if not self._knows(node.name):
                    raise unknown_name(node.name, set().union(*self.scopes), node.span)
            elif kind is s.CallNode or kind is s.Attribute or kind is s.Index or kind is s.Binary:
                pending += self._checked(node)
            elif kind in PARTS:
                pending += PARTS[kind](node)
            elif node is CLOSE:
                self.scopes.pop()
            elif kind is s.Declarator:
                self._bind(node, len(self.scopes) == outer)
            else:
                self._statement(node, pending)

    def _knows(self, name: str) -> bool:
        return any(name in scope for scope in self.scopes) or name in NAMES

    def _bind(self, node: s.Declarator, outermost: bool) -> None:
        if outermost and node.name in self.roles:
            role = self.roles[node.name]
            output = role == "an output"
            cure = f"drop the type to assign to the output: {node.name} = ...;" if output else "rename the variable"
            raise HidesParameter(node.name, role, cure).at(node.span)
        self.scopes[-1].add(node.name)

    # --- expressions ---

    def _checked(self, node: s.CallNode | s.Attribute | s.Index | s.Binary) -> tuple[s.Node, ...]:
        """The parts of an expression that has something to check itself."""
        match node:
            case s.CallNode(callee=s.Name(name=name) | s.TemplateId(name=name) as callee, args=args):
                if name in self.functions:
                    self.called.append(name)
                elif name not in FUNCTIONS and not self._knows(name):
                    raise unknown_function(name, {*ATOMICS, *self.functions}, callee.span)
                return args[::-1]
            case s.Attribute(value=s.Name(name=name), name=member) if name in MODULES and not self._knows(name):
                raise unknown_member(name, member, node.span)
            case s.Index(value=value, index=s.Comma()):
                raise comma_index(node, isinstance(value, s.Name) and value.name in self.raw)
            case s.Binary():
                self._refuse_power(node)
        return PARTS[type(node)](node)

    def _refuse_power(self, node: s.Binary) -> None:
        """``x ** 2``, where what would be read through a pointer cannot be one."""
        if is_power(node):
            values = self.roles.keys() - self.raw | {"i", "n"}
            match node.right:
                case s.Prefix(operand=s.Name(name=name)) if name not in values:
                    return
                case s.Prefix(operand=s.Name() | s.Numeral()):
                    raise power(node)

    # --- statements ---

    def _statement(self, node: s.Statement, pending: list[Any]) -> None:
        """Put the parts of a statement on the stack, last first."""
        match node:
            case s.Evaluate(value=value):
                check_effect(value, self.functions)
                pending.append(value)
            case s.Declaration(declarators=declarators):
                for each in reversed(declarators):
                    pending += (each, *(each.args or ())[::-1], *((each.value,) if each.value else ()))
            case s.BlockStmt(body=body):
                self._open(pending, *body)
            case s.IfNode(condition=condition, then=then, orelse=orelse):
                pending += (s.BlockStmt(node.span, orelse), s.BlockStmt(node.span, then), condition)
            case s.LoopStmt():
                self._loop(node, pending)
            case s.RangeLoop(values=values, body=body):
                variable = s.Declarator(node.span, node.name, "", ())
                self._open(pending, values, variable, s.BlockStmt(node.span, body))
            case s.EnumDef():
                self.scopes[-1] |= _enumerators(node)
            case s.StructDef():
                self.scopes[-1] |= _constants(node)
            case s.Switch(value=value, items=items):
                pending += (
                    s.BlockStmt(node.span, tuple(each for each in items if not isinstance(each, s.Case))),
                    value,
                )
            case s.ReturnNode(value=value) if value is not None:
                pending.append(value)

    def _open(self, pending: list[Any], *nodes: s.Node) -> None:
        self.scopes.append(set())
        pending += (CLOSE, *nodes[::-1])

    def _loop(self, node: s.LoopStmt, pending: list[Any]) -> None:
        """A loop; the condition of ``do`` sees nothing of the body, and neither does the step."""
        init = node.init.value if isinstance(node.init, s.Evaluate) else node.init
        body = s.BlockStmt(node.span, node.body)
        self._open(pending, *(part for part in (init, node.condition, body, node.step) if part is not None))

    # --- functions ---

    def called_functions(self) -> None:
        """Check the plain functions that are called, from the texts or from each other."""
        seen: set[str] = set()
        while self.called:
            name = self.called.pop()
            if name in seen or len(self.functions[name]) > 1 or self.functions[name][0].templates is not None:
                continue
            seen.add(name)
            function = self.functions[name][0]
            assert function.body is not None, "mere declarations are left out"
            self.roles, self.raw = {}, set()
            self.scopes = [self.constants | {param.name for param in function.params}]
            self.walk((function.body,))
