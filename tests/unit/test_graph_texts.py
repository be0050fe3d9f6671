"""Texts of graphs: whatever a graph holds is written so that it reads back as the same graph."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import fusec
from fusec import graph
from fusec.base.dtypes import BY_NAME
from fusec.base.ops import TABLE
from fusec.frontends.grammar_tables import GRAMMARS, load

WORDS = sorted(word for word in load("graph", GRAMMARS["graph"]).words if word.isidentifier())


@pytest.mark.parametrize("word", [*WORDS, "float32", "add", "nan", "inf", "x1"])
def test_every_word_of_a_text_is_a_name_too(word):
    g = graph.Graph(word)
    x = g.input(word, "bool", (word, f"2*{word} + 1"))
    y = g.call(word, np.logical_not, x, results=[("bool", x.shape)])
    g.output(x & y, word)
    g.output(g.number(f"{word} + 1"), f"{word}_1")
    read = graph.parse(str(g), functions={word: np.logical_not})
    assert (str(read), read.built()) == (str(g), g.built())


def test_inputs_called_true_and_false_are_no_constants():
    g = graph.Graph()
    false, true = g.input("false", "bool"), g.input("true", "bool")
    g.output(g.apply("where", false, true, True), "true")
    assert 'where("false", "true", true)' in str(g)
    assert str(graph.parse(str(g)).compile()(np.array(True), np.array(False))) == "False"


def test_no_word_is_the_name_of_an_operation_or_dtype():
    assert not {*TABLE, *BY_NAME} & {*WORDS}


def test_large_arrays_of_constants_are_bytes_in_texts():
    table, x = np.arange(200_000.0) - 0.1, np.ones(200_000)
    made = fusec.fuse(lambda x: x + (np.arange(200_000.0) - 0.1)).graph(x)
    text = str(made)
    assert len(text) > 1 << 20
    assert str(graph.parse(text)) == text
    compiled = pickle.loads(pickle.dumps(made.compile()))
    np.testing.assert_array_equal(compiled(x), x + table)


@pytest.mark.parametrize("dtype", sorted(BY_NAME))
def test_arrays_of_constants_of_every_dtype_read_back(dtype):
    g = graph.Graph()
    for count in (3, 40):
        values = (np.arange(count) % 2).astype(">i2")
        g.output(g.array(values, dtype))
        g.output(g.array(values.tolist(), dtype).reshape(count, 1))
    read = graph.parse(str(g))
    assert (str(read), read.built()) == (str(g), g.built())
    kinds = {value.children[0] if value.children else value for _, value in g.built().outputs}
    assert len(kinds) == 2


@pytest.mark.parametrize(
    ("line", "code", "found"),
    [
        ('array float64 "AAAA" to [1]', "F760", "3 bytes as elements of float64"),
        ('array float64 "" to [0]', "F760", "0 bytes as elements of float64"),
        ('array float33 "AAAA" to [1]', "F762", "there is no dtype 'float33'"),
        ('array int8 "A*AA" to [3]', "F762", "the bytes of an array are no base64"),
        ('array int8 "AA\u00e9A" to [3]', "F762", "the bytes of an array are no base64"),
        ('array int8 "AAAA" to [4]', "F761", "3 constants as [4]"),
        ('array int8 "AAAA" to [n]', "F761", "3 constants as [n]"),
    ],
)
def test_bytes_that_are_no_array_are_refused(line, code, found):
    with pytest.raises(fusec.FusecError) as raised:
        graph.parse(f"graph g(x: int8[n]) {{ %1 = {line} return y = %1 }}")
    assert raised.value.code == code
    assert found in str(raised.value)
