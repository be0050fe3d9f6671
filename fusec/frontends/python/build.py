# ruff: noqa: D102 - the methods are the rules of the grammar, which python.lark explains
"""Grammar rules to syntax tree: one method for every rule or alias of python.lark, called as the parser reduces it."""

from __future__ import annotations

import re

from fusec.base.records import replace
from fusec.errors.language import BadNumber
from fusec.frontends.build import Children, SyntaxBuilder, node
from fusec.frontends.grammar_tables import Token
from fusec.frontends.python import syntax as s

LAMBDA = "lambda_"  # what a function without a name is called where it needs one


class PythonTreeBuilder(SyntaxBuilder):
    """Builds the tree of one text."""

    grammar = "python"

    # --- functions ---

    def module(self, children: Children) -> tuple[s.FunctionNode, ...]:
        return tuple(children)

    def function(self, children: Children) -> s.FunctionNode:
        rest = [child for child in children if not isinstance(child, str)]
        name, returns, body = rest[1], rest[-2], rest[-1]
        params = tuple(child for child in rest[2:-2] if isinstance(child, s.ParamNode))
        doc = ""
        if body and isinstance(body[0], s.Evaluate) and isinstance(body[0].value, s.String):
            doc, body = unquoted(body[0].value.text), body[1:]
        return s.FunctionNode(self._at(name), name.text, params, returns, body, doc)

    inner = function

    def decorator(self, _: Children) -> str:
        return "@"

    parameter = node(s.ParamNode, span=(0, 0))

    def anonymous(self, children: Children) -> s.FunctionNode:
        word, *rest = children
        params = tuple(child for child in rest if isinstance(child, s.ParamNode))
        value = next(child for child in reversed(rest) if isinstance(child, s.Node))
        at = self._at(word)
        return s.FunctionNode(at, LAMBDA, params, None, (s.ReturnNode(value.span, value),), "")  # type: ignore[arg-type]

    def bare(self, children: Children) -> s.ParamNode:
        name, default = children
        return s.ParamNode(self._at(name), name.text, None, default)

    # --- statements ---

    def suite(self, children: Children) -> s.Body:
        found: list[s.Statement] = []
        for child in children:
            if isinstance(child, tuple) and not isinstance(child, Token):
                found += child
            elif isinstance(child, s.Node):
                found.append(child)  # type: ignore[arg-type]
        return tuple(found)

    def line(self, children: Children) -> s.Body:
        return tuple(child for child in children if isinstance(child, s.Node))  # type: ignore[misc]

    def if_(self, children: Children) -> s.IfNode:
        word, condition, then, *others = children
        orelse: s.Body = ()
        for other in reversed(others):
            orelse = (replace(other, orelse=orelse),) if isinstance(other, s.IfNode) else other
        return s.IfNode(self._at(word), condition, then, orelse)

    def elif_(self, children: Children) -> s.IfNode:
        condition, then = children
        return s.IfNode(condition.span, condition, then, ())

    def else_(self, children: Children) -> s.Body:
        return children[0]  # type: ignore[no-any-return]

    while_ = node(s.WhileNode, fields=(1, 2), span=(0, 0))
    for_ = node(s.For, fields=(1, 2, 3), span=(0, 0))

    def targets(self, children: Children) -> s.Expression:
        items = tuple(child for child in children if child is not None)
        return items[0] if len(items) == 1 else s.Tuple(self._join(items[0], items[-1]), items)

    def assign(self, children: Children) -> s.AssignNode:
        *targets, value = children
        return s.AssignNode(self._join(targets[0], value), tuple(targets), value)

    def augment(self, children: Children) -> s.Augment:
        target, op, value = children
        return s.Augment(self._join(target, value), target, op.text[:-1], self._at(op), value)

    annotate = node(s.Annotate)
    pass_ = node(s.Pass, fields=())
    assert_ = node(s.Assert, fields=(1,), span=(0, 1))

    # --- expressions ---

    def tuple_(self, children: Children) -> s.Tuple:
        items = tuple(child for child in children if child is not None)
        return s.Tuple(self._join(items[0], items[-1]), items)

    choose = node(s.Choose, fields=(1, 0, 2))
    either = node(s.Junction, fields=(1, 0, 2))
    both = either

    def compare(self, children: Children) -> s.Compare:
        pairs = tuple((children[at].text, children[at + 1]) for at in range(1, len(children), 2))
        return s.Compare(self._join(children[0], children[-1]), children[0], pairs)

    def number(self, children: Children) -> s.Number:
        return s.Number(self._at(children[0]), self._number(children[0]))

    def constant(self, children: Children) -> s.Constant:
        value = {"True": True, "False": False}.get(children[0].text)
        return s.Constant(self._at(children[0]), value)

    def empty(self, children: Children) -> s.Tuple:
        return s.Tuple(self._join(children[0], children[1]), ())

    def call(self, children: Children) -> s.CallNode:
        callee, *args, closing = children
        given = tuple(arg for arg in args if arg is not None and not isinstance(arg, s.Keyword))
        keywords = tuple(arg for arg in args if isinstance(arg, s.Keyword))
        return s.CallNode(self._join(callee, closing), callee, given, keywords)

    keyword = node(s.Keyword, span=(0, 0))
    attribute = node(s.Attribute)

    def _number(self, token: Token) -> int | float | complex:
        text = token.text.replace("_", "")
        try:
            if text[-1] in "jJ" and text[:2] not in ("0x", "0X"):
                return complex(0.0, float(text[:-1]))
            if re.fullmatch(r"[0-9]+|0[xXoObB].*", text):
                return int(text, 0)
            return float(text)
        except ValueError:
            cure = "octal numbers begin with 0o" if text.isdigit() else "shorten it"
            raise BadNumber(token.text, "", cure).at(self._at(token)) from None


def unquoted(text: str) -> str:
    """What a string literal says, escapes left as they are; "" for several or for one of bytes."""
    found = re.fullmatch(r"""(?i:r|u)?('''|\"""|'|")(.*)\1""", text, re.DOTALL)
    return found.group(2) if found else ""
