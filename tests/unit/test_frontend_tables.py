"""The parse tables: kept as plain data, never trusted from a folder others can write, and the same as lark's own."""

import hashlib
import json
import subprocess
import sys
from importlib import resources

import pytest
from lark import Lark

from fusec.frontends import tables

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


def test_kept_tables_parse_like_new_ones(tmp_path):
    fresh = tables.load_tables(GRAMMAR, ("start",), tmp_path)
    (kept,) = tmp_path.iterdir()
    json.loads(kept.read_text().partition("\n")[2])  # plain data after its digest
    assert total(fresh, "1+(2+3)+4") == total(tables.load_tables(GRAMMAR, ("start",), tmp_path), "1+(2+3)+4") == 10


@pytest.mark.parametrize("spoilt", ["", "{}", "[1, 2", '{"rules": [], "symbols": [], "states": [[[1], [2]]]}'])
def test_spoilt_tables_are_made_anew(tmp_path, spoilt):
    tables.load_tables(GRAMMAR, ("start",), tmp_path)
    (kept,) = tmp_path.iterdir()
    digest = hashlib.sha256(spoilt.encode()).hexdigest()
    kept.write_text(spoilt if spoilt == "[1, 2" else f"{digest}\n{spoilt}")
    assert total(tables.load_tables(GRAMMAR, ("start",), tmp_path), "1+2") == 3


def test_the_first_token_that_does_not_fit_is_named(tmp_path):
    found = tables.load_tables(GRAMMAR, ("start",), None)
    with pytest.raises(tables.UnexpectedSymbolError) as caught:
        total(found, "1+)")
    assert caught.value.token.text == ")"
    assert caught.value.expected == {"NUMBER", "LPAR"}


def test_tables_stay_in_a_private_folder(tmp_path, monkeypatch):
    folder = tmp_path / "open"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    monkeypatch.setenv("FUSEC_CACHE_DIR", str(folder))
    assert tables.table_folder() is None
    folder.chmod(0o700)
    assert tables.table_folder() == folder
    monkeypatch.setenv("FUSEC_CACHE_DIR", str(tmp_path / "file" / "below"))
    (tmp_path / "file").write_text("")
    assert tables.table_folder() is None


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


def test_a_second_process_reads_kernels_without_lark(tmp_path):
    code = (
        "import sys; from fusec.frontends.text import parse; parse('T x', 'T z', 'z = x * 2');"
        "print('lark' in sys.modules)"
    )
    environment = {"FUSEC_CACHE_DIR": str(tmp_path), "PATH": ""}
    outputs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment).stdout
        for _ in range(2)
    ]
    assert outputs == ["True\n", "False\n"]


def test_every_rule_has_a_builder():
    from fusec.frontends.build import Builder

    text = (resources.files("fusec.grammar") / "kernel.lark").read_text()
    parser = Lark(text, parser="lalr", start=["body", "preamble", "condition"], maybe_placeholders=True)
    found = tables.load("kernel", ("body", "preamble", "condition"))
    assert len(found.bind(Builder)) == len(parser.rules)
