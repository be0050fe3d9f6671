# ruff: noqa: D102 - the methods are the rules of the grammar, which kernel.lark explains
"""Grammar rules to syntax tree: one method for every rule or alias of kernel.lark, called as the parser reduces it."""

from __future__ import annotations

from collections import Counter

from fusec.base.records import replace
from fusec.base.source import SourceFile, Span
from fusec.frontends.build import Children, SyntaxBuilder, node
from fusec.frontends.c import syntax as s
from fusec.frontends.grammar_tables import Token


class TreeBuilder(SyntaxBuilder):
    """Builds the tree of one text."""

    grammar = "kernel"
    alternatives = {
        "or": "||", "and": "&&", "bitor": "|", "xor": "^", "bitand": "&", "not_eq": "!=", "not": "!", "compl": "~",
        "and_eq": "&=", "or_eq": "|=", "xor_eq": "^=",
    }  # fmt: skip

    def __init__(self, file: SourceFile) -> None:
        super().__init__(file)
        self.addressed: Counter[str] = Counter()  # how often ``&name`` stands where the address may be kept

    # --- texts and preambles ---

    def body(self, children: Children) -> s.Body:
        return tuple(children)

    preamble = type_args = arguments = body

    def condition(self, children: Children) -> s.Expression:
        return children[0]  # type: ignore[no-any-return]

    def template(self, children: Children) -> s.FunctionDef | s.StructDef:
        params, item = children
        found: s.FunctionDef | s.StructDef = replace(item, templates=params)
        return found

    def template_head(self, children: Children) -> tuple[s.TemplateParam, ...]:
        return tuple(child for child in children if child is not None)

    def type_param(self, children: Children) -> s.TemplateParam:
        name, default = children[-2:]
        return s.TemplateParam(self._at(name), name.text, None, default)

    value_param = node(s.TemplateParam, fields=(1, 0, 2), span=(1, 1))

    def function(self, children: Children) -> s.FunctionDef:
        kind, rest = children[0], children[1:]
        at = next(i for i, child in enumerate(rest) if isinstance(child, Token))
        name, tail = rest[at], rest[at + 1 :]
        block = tail.pop() if tail and isinstance(tail[-1], s.BlockStmt) else None
        params = tuple(child for child in tail if child is not None)
        return s.FunctionDef(self._at(name), name.text, _marked(kind, rest[:at]), params, block)

    def param(self, children: Children) -> s.FunctionParam:
        at = next(i for i, child in enumerate(children) if isinstance(child, Token))
        arrays = ["*"] * bool(children[at + 1 :])
        kind = _marked(children[0], [*children[1:at], *arrays])
        return s.FunctionParam(self._at(children[at]), children[at].text, kind)

    def unnamed_param(self, children: Children) -> s.FunctionParam:
        return s.FunctionParam(children[0].span, "", _marked(children[0], children[1:]))

    def struct(self, children: Children) -> s.StructDef:
        return self._struct(children[1], children[2:])

    def typedef_struct(self, children: Children) -> s.StructDef:
        return self._struct(children[-1], children[2:-1])

    def _struct(self, name: Token, members: Children) -> s.StructDef:
        return s.StructDef(self._at(name), name.text, tuple(each for each in members if each is not None))

    def fields(self, children: Children) -> s.Fields:
        return s.Fields(self._join(children[0], children[-1]), children[0], tuple(children[1:]))

    def struct_fields(self, children: Children) -> s.Fields:
        word, name, *rest = children
        at = next(i for i in range(len(rest), 0, -1) if not isinstance(rest[i - 1], s.Declarator))
        members, declarators = rest[:at], rest[at:]
        name = name or Token("TYPE", f"{declarators[0].name}_type", word.start, word.end)
        struct = self._struct(name, members)
        kind = s.Qualified(struct.span, s.TypeName(struct.span, struct.name), frozenset())
        return s.Fields(self._join(word, declarators[-1]), kind, tuple(declarators), struct)

    def field(self, children: Children) -> s.Declarator:
        return self.declarator(children)

    def empty_member(self, _: Children) -> None:
        return None

    def method(self, children: Children) -> s.FunctionDef:
        last = len(children) - 1 if isinstance(children[-1], s.BlockStmt) else len(children)
        start = last
        while isinstance(children[start - 1], Token) and children[start - 1].type == "QUALIFIER":
            start -= 1
        found = self.function([*children[:start], *children[last:]])
        is_const = any(child.text == "const" for child in children[start:last])
        return replace(found, const=True) if is_const else found

    def constructor(self, children: Children) -> s.FunctionDef:
        kind, rest = children[0], children[1:]
        block = rest.pop() if isinstance(rest[-1], s.BlockStmt) else None
        params = tuple(child for child in rest if isinstance(child, s.FunctionParam))
        initials = tuple(child for child in rest if isinstance(child, s.Initial))
        return s.FunctionDef(kind.span, "", kind, params, block, None, initials)

    def default_constructor(self, children: Children) -> s.FunctionDef:
        return self.constructor([*(c for c in children if not isinstance(c, Token)), self.block([])])

    def initial(self, children: Children) -> s.Initial:
        name, args = children
        given = args.elements if isinstance(args, s.Braced) else args or ()
        return s.Initial(self._at(name), name.text, given)

    def enum(self, children: Children) -> s.EnumDef:
        word, scope, name, base, values = children
        span = self._at(name or word)
        return s.EnumDef(span, name.text if name else "", values, base, scope is not None)

    def typedef_enum(self, children: Children) -> s.EnumDef:
        _, _, base, values, name = children
        return s.EnumDef(self._at(name), name.text, values, base, scoped=False)

    def enumerators(self, children: Children) -> tuple[tuple[str, Span, s.Expression | None], ...]:
        return tuple(child for child in children if child is not None)

    def enumerator(self, children: Children) -> tuple[str, Span, s.Expression | None]:
        return children[0].text, self._at(children[0]), children[1]

    def typedef(self, children: Children) -> s.Alias:
        name = children[-1]
        return s.Alias(self._at(name), name.text, _marked(children[0], children[1:-1]))

    using = node(s.Alias, span=(0, 0))

    # --- statements ---

    def empty(self, _: Children) -> s.Pass:
        return s.Pass(Span(self.file, 0, 0))

    def block(self, children: Children) -> s.BlockStmt:
        span = self._join(children[0], children[-1]) if children else Span(self.file, 0, 0)
        return s.BlockStmt(span, tuple(children))

    def declaration(self, children: Children) -> s.Declaration:
        return s.Declaration(self._join(children[0], children[-1]), children[0], tuple(children[1:]))

    def declarator(self, children: Children) -> s.Declarator:
        at = next(i for i, child in enumerate(children) if isinstance(child, Token))
        arrays = tuple(child[0] for child in children[at + 1 : -1])
        value, args = children[-1], None
        if isinstance(value, tuple):
            value, args = None, value
        name: Token = children[at]
        return s.Declarator(self._at(name), name.text, _marks(children[:at]), arrays, value, args)

    constant = declarator

    def constructed(self, children: Children) -> tuple[s.Expression, ...]:
        return children[0] or ()

    def array(self, children: Children) -> list[s.Expression | None]:
        return children

    def braced(self, children: Children) -> s.Braced:
        elements = tuple(child for child in children[:-1] if child is not None)
        end = self._at(children[-1])
        return s.Braced(self._join(elements[0] if elements else end, end), elements)

    def if_then(self, children: Children) -> s.IfNode:
        word, condition, then = children
        return s.IfNode(self._join(word, condition), condition, (then,), ())

    def if_else(self, children: Children) -> s.IfNode:
        word, condition, then, orelse = children
        return s.IfNode(self._join(word, condition), condition, (then,), (orelse,))

    def for_loop(self, children: Children) -> s.LoopStmt:
        word, init, condition, step, body = children
        return s.LoopStmt(self._at(word), init, condition, step, (body,))

    def range_loop(self, children: Children) -> s.RangeLoop:
        _, kind, *pointers, name, values, body = children
        return s.RangeLoop(self._at(name), _marked(kind, pointers), name.text, values, (body,))

    def while_loop(self, children: Children) -> s.LoopStmt:
        word, condition, body = children
        return s.LoopStmt(self._join(word, condition), None, condition, None, (body,))

    def do_loop(self, children: Children) -> s.LoopStmt:
        word, body, _, condition = children
        return s.LoopStmt(self._at(word), None, condition, None, (body,), test_first=False)

    def switch(self, children: Children) -> s.Switch:
        return s.Switch(self._join(children[0], children[1]), children[1], tuple(children[2:-1]))

    case = node(s.Case)

    def default(self, children: Children) -> s.Case:
        return s.Case(self._at(children[0]), None)

    # --- types ---

    def type(self, children: Children) -> s.Qualified:
        qualifiers = frozenset(child.text for child in children if isinstance(child, Token))
        base = next(child for child in children if isinstance(child, (s.TypeName, s.Decltype)))
        return s.Qualified(self._join(children[0], children[-1]), base, qualifiers)

    def builtin(self, children: Children) -> s.TypeName:
        return s.TypeName(self._join(children[0], children[-1]), " ".join(child.text for child in children))

    named = node(s.TypeName)
    tagged = node(s.TypeName, fields=(1,), span=(1, 1))
    named_of = node(s.TypeName, span=(0, 0))

    def trait_type(self, children: Children) -> s.TypeName:
        name, args, member = children
        return s.TypeName(self._at(name), name.text, args, member.text if member else "")

    def decltype(self, children: Children) -> s.Decltype:
        word, value, member = children
        return s.Decltype(self._join(word, value), value, member.text if member else "")

    def pointer(self, children: Children) -> str:
        text: str = children[0].text
        return "&" if text == "bitand" else text

    def type_name(self, children: Children) -> s.Qualified:
        return _marked(children[0], children[1:])

    # --- expressions ---

    comma = node(s.Comma)

    def assign(self, children: Children) -> s.Assignment:
        target, op, value = children
        return s.Assignment(self._join(target, value), self.alternatives.get(op.text, op.text)[:-1], target, value)

    choose = node(s.Choose)

    def prefix(self, children: Children) -> s.Prefix:
        op, operand = children
        if op.type == "AMP" and isinstance(operand, s.Name):
            self.addressed[operand.name] += 1
        return super().prefix(children)

    postfix = node(s.Postfix, fields=(1, 0))
    cast = node(s.Cast, fields=(1, 2))
    named_cast = node(s.Cast, fields=(1, 2))
    sizeof = node(s.Sizeof, fields=(1,))

    def call(self, children: Children) -> s.CallNode:
        callee, args, closer = children
        for arg in args or ():
            if isinstance(arg, s.Prefix) and arg.op == "&" and isinstance(arg.operand, s.Name):
                self.addressed[arg.operand.name] -= 1  # a call cannot keep it
        return s.CallNode(self._join(callee, closer), callee, args or ())

    def attribute(self, children: Children) -> s.Attribute:
        value, op, name = children
        return s.Attribute(self._join(value, name), value, name.text, op.text == "->")

    instance = node(s.TemplateId, fields=(0, 1))
    trait_value = node(s.Trait)
    number = node(s.Numeral)
    character = node(s.Character)
    constant_word = node(s.Word)

    def construct(self, children: Children) -> s.Construct:
        kind, args, closer = children
        return s.Construct(self._join(kind, closer), kind, args or ())

    def construct_braced(self, children: Children) -> s.Construct:
        kind, braced = children
        return s.Construct(self._join(kind, braced), kind, braced.elements)


def _marks(pointers: Children) -> str:
    return "".join(pointers)


def _marked(kind: s.Qualified, pointers: Children) -> s.Qualified:
    return replace(kind, marks=kind.marks + _marks(pointers)) if pointers else kind
