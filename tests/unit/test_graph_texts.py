"""Texts of graphs: whatever a graph holds is written so that it reads back as the same graph."""

from __future__ import annotations

import numpy as np
import pytest

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
