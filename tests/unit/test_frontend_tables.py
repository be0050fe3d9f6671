"""The parse tables: kept as plain data, never trusted from a folder others can write, and the same as lark's own."""

import subprocess
import sys
from importlib import resources

import pytest
from lark import Lark

from fusec.frontends import grammar_tables
from fusec.frontends.c.build import TreeBuilder
from fusec.frontends.python.build import PythonTreeBuilder
from fusec.graphs.parse import GraphTextBuilder

GRAMMAR = 'start: sum\n?sum: item | sum PLUS item -> add\n?item: NUMBER | "(" sum ")"\nPLUS: "+"\n%declare NUMBER\n'


class Token:
    def __init__(self, kind, text):
        self.type, self.text = kind, text


class Sums:
    def start(self, children):
        return children[0]

    def add(self, children):
        left, _, right = children
        return value(left) + value(right)


def value(item):
    return int(item.text) if isinstance(item, Token) else item


def total(found, text):
    kinds = {"+": "PLUS", "(": "LPAR", ")": "RPAR"}
    tokens = [Token(kinds.get(char, "NUMBER"), char) for char in text]
    return value(found.parse(tokens, "start", found.bind(Sums), Sums()))


def test_kept_tables_parse_like_new_ones():
    kept = grammar_tables.write_tables(GRAMMAR, ("start",))
    fresh, read = grammar_tables.load_tables(GRAMMAR, ("start",)), grammar_tables.load_tables(GRAMMAR, ("start",), kept)
    assert fresh == read
    assert total(fresh, "1+(2+3)+4") == total(read, "1+(2+3)+4") == 10


def test_tables_of_another_text_are_made_anew():
    kept = grammar_tables.write_tables(GRAMMAR.replace('"+"', '"-"'), ("start",))
    assert total(grammar_tables.load_tables(GRAMMAR, ("start",), kept), "1+2") == 3


@pytest.mark.parametrize("name", grammar_tables.GRAMMARS)
def test_the_shipped_tables_are_those_of_the_grammar(name):
    folder = resources.files("fusec.grammar")
    text = (folder / f"{name}.lark").read_text(encoding="utf-8")
    shipped = (folder / f"{name}.json").read_text(encoding="utf-8")
    assert shipped == grammar_tables.write_tables(text, grammar_tables.GRAMMARS[name]), (
        "run python -m fusec.frontends.grammar_tables"
    )


def test_the_first_token_that_does_not_fit_is_named():
    found = grammar_tables.load_tables(GRAMMAR, ("start",))
    with pytest.raises(grammar_tables.UnexpectedSymbolError) as caught:
        total(found, "1+)")
    assert caught.value.token.text == ")"
    assert caught.value.expected == {"NUMBER", "LPAR"}


def test_the_kernel_grammar_has_two_known_conflicts():
    text = (resources.files("fusec.grammar") / "kernel.lark").read_text()
    code = (
        "import lark, logging, sys; lark.logger.setLevel(logging.DEBUG);"
        "lark.Lark(sys.stdin.read(), parser='lalr', start=['body', 'preamble', 'condition'], debug=True)"
    )
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, text=True, check=True)
    conflicts = [line for line in done.stderr.splitlines() if "onflict" in line]
    assert len(conflicts) == 2, done.stderr
    assert all("ELSE" in line or "LESS" in line for line in conflicts)


def test_kernels_are_read_without_lark():
    code = (
        "import sys; from fusec.frontends.c.definition import Definition; Definition('T x', 'T z', 'z = x * 2').read();"
        "import fusec; fusec.elementwise('def f(x): return x * 2');"
        "assert 'lark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", grammar_tables.GRAMMARS)
def test_every_rule_has_a_builder(name):
    builder = {"kernel": TreeBuilder, "python": PythonTreeBuilder, "graph": GraphTextBuilder}[name]
    text = (resources.files("fusec.grammar") / f"{name}.lark").read_text()
    parser = Lark(text, parser="lalr", start=list(grammar_tables.GRAMMARS[name]), maybe_placeholders=True)
    found = grammar_tables.load(name, grammar_tables.GRAMMARS[name])
    assert len(found.bind(builder)) == len(parser.rules)


def test_the_python_grammar_has_no_conflicts():
    text = (resources.files("fusec.grammar") / "python.lark").read_text()
    code = (
        "import lark, logging, sys; lark.logger.setLevel(logging.DEBUG);"
        "lark.Lark(sys.stdin.read(), parser='lalr', start=['module'], debug=True)"
    )
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, text=True, check=True)
    assert "onflict" not in done.stderr
