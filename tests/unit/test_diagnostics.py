"""Errors point at the user's own characters, whatever the text looks like."""

import ast

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import fusec
from fusec.base.diagnostics import WIDTH, did_you_mean, render
from fusec.base.source import SourceFile, Span
from fusec.cli.main import main

TEXT = st.text(st.sampled_from("ab é\t(\n"), min_size=1, max_size=400)


@given(TEXT, st.data())
def test_the_caret_stands_under_the_character(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    lines = render("F100", "wrong", Span(SourceFile("here", text), start, end)).split("\n")
    shown, marks = lines[-2], lines[-1]
    at = marks.index("^")
    if start < len(text) and text[start] != "\n":
        assert shown[at] == text[start]
    assert len(shown) <= WIDTH + 8
    assert [char for char in shown[:at] if char == "\t"] == [char for char in marks[:at] if char == "\t"]


def test_the_first_line_can_be_matched():
    text = render("F215", "Loop size is undecided.", None, "all raw", "pass size=")
    assert text.split("\n") == ["Loop size is undecided. [F215]", "  all raw", "hint: pass size="]


@given(TEXT, st.data())
def test_positions_count_lines_and_columns_from_one(text, data):
    offset = data.draw(st.integers(0, len(text)))
    line, column = SourceFile("here", text).position(offset)
    assert line == text[:offset].count("\n") + 1
    assert column == offset - (text[:offset].rfind("\n") + 1) + 1


def test_what_no_terminal_shows_is_replaced_and_keeps_its_place():
    text = "x \ud800\u202e\x1b $"
    shown = render("F100", f"wrong {text}", Span(SourceFile("here", text), 6, 7))
    shown.encode()
    *_, line, marks = shown.split("\n")
    assert line[marks.index("^")] == "$"
    assert not any(each in shown for each in text[2:5])


def test_suggestions_are_close_or_absent():
    assert did_you_mean("sinn", ["sin", "cos"]) == "did you mean 'sin'?"
    assert did_you_mean("quux", ["sin", "cos"]) == ""


@pytest.mark.parametrize(("name", "meant"), [("tahn", "tanh"), ("epx", "exp"), ("lgo", "log"), ("sniff", "")])
def test_exchanged_letters_are_one_slip(name, meant):
    assert did_you_mean(name, ["tan", "tanh", "exp", "exp2", "log", "log2"]) == (meant and f"did you mean '{meant}'?")


def test_short_names_resemble_too_many_to_suggest_any():
    assert did_you_mean("qx", ["x", "q", "qxy"]) == ""
    assert did_you_mean("sine", ["in", "si"]) == ""
    assert did_you_mean("mx", ["mix", "max"]) == ""


def test_a_short_name_may_lack_the_middle_letter_of_one():
    assert did_you_mean("mx", ["min", "max", "fmax"]) == "did you mean 'max'?"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fusec.evaluate("a", local_dict=3), "must be a dict, not an int"),
        (lambda: fusec.sum(np.ones(3), out=object()), "type <class 'object'> for parameter 'out' of kernel 'sum'"),
        (lambda: fusec.fuse(lambda x: iter([x]))(np.ones(3)), "cannot return a list_iterator"),
        (
            lambda: fusec.ElementwiseKernel("int32 x", "T y", "y = x.real()")(np.ones(3, "int32"), np.ones(3)),
            "an int32 value",
        ),
        (lambda: fusec.sum(np.ones(3), initial=[]), "must be one number, not a list"),
        (lambda: fusec.elementwise("lambda x: x")(np.ones(3), out=ast.Name()), "of kernel 'lambda_' got a Name"),
    ],
)
def test_nouns_have_their_articles(call, message):
    with pytest.raises(fusec.FusecError, match=message):
        call()


def test_explanations_have_articles(capsys):
    for code, text in (("F232", "an IndexError"), ("F201", "a TypeError"), ("F361", "message: a {type} in host")):
        main(["explain", code])
        assert text in capsys.readouterr().out
