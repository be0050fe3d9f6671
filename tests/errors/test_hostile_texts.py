# ruff: noqa: F841 - the variables are named in texts
"""Whatever the text given to evaluate, the worst that happens is an error: nothing of it is ever run."""

import pickle
import sys
import traceback

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fusec
from fusec.errors.fusing import FusecKeyError

HOSTILE = [
    "__import__('os').system('true')",
    "__import__",
    "__builtins__",
    "(__import__)(a)",
    "a.__class__.__mro__",
    "a.__class__",
    "a.real.__class__",
    "a.imag.dtype",
    "a. real. base",
    "().__class__.__bases__[0].__subclasses__()",
    "(3+1).ᵇit_length()",
    "(3+1).bit_length()",
    "ﬂoor.__call__(a)",
    "＿＿import＿＿(a)",
    "__𝒾𝓂𝓅ℴ𝓇𝓉__('os')",
    "lambda x: x",
    "lambda: a",
    "(lambda x: x)(a)",
    "import os;",
    "os. cpu_count()",
    "locals()['evaluate']",
    "globals()",
    "open('/etc/passwd')",
    "exec('a')",
    "eval('a')",
    "compile",
    "print(a)",
    "getattr(a, 'data')",
    "type(a)",
    "a()",
    "a(a)",
    "sin(a)(a)",
    "sin",
    "sin + a",
    "a[0]",
    "a[:]",
    "[a]",
    "[x for x in a]",
    "{a}",
    "{a: a}",
    "(x for x in a)",
    "(a, a)",
    "a, a",
    "()",
    "*a",
    "**a",
    "sin(*a)",
    "sin(**a)",
    "sin(x=a)",
    "a if a else a",
    "a and a",
    "a or a",
    "not a",
    "a < a < a",
    "a is a",
    "a in a",
    "a := a",
    "(a := a)",
    "a = a",
    "a += a",
    "a; a",
    "a\na",
    "a @ a",
    "await a",
    "yield a",
    "del a",
    "f'{a}'",
    "'a'",
    "b'a'",
    "'a' 'b'",
    "'''",
    '"',
    "'",
    "\\",
    "a\\",
    "a $ a",
    "a ? a",
    "a!",
    "`a`",
    "...",
    "None",
    "None + a",
    "sum(a, axis=a)",
    "sum(a, axis=-1)",
    "sum(a, axis=1e3)",
    "sum(a, axis=99)",
    "sum(a, axis=(0, 0))",
    "sum(a, axis='0')",
    "sum(a, 0, 0)",
    "sum(a, keepdims=1)",
    "sum()",
    "sum(axis=0)",
    "contains(a, a)",
    "",
    " ",
    "\n",
    "#",
    "\0",
    "a\0",
    "a + \x00b",
    "\ufeff",
    "a\u202e + a",
    "a\u200b",
    "\ud800",
    "a +",
    "+",
    "a + * a",
    "((a)",
    "(a))",
    "a a",
    "1 2",
    "1a",
    "0x",
    "1e",
    "09",
    "1__0",
    "0b2",
    "1" * 5000,
    "1e999999999999j + None",
    "a << 1.5",
    "a ** a ** None",
    "(" * 60_000,
    "(" * 300 + "a" + ")" * 300,
    "-" * 60_000 + "a",
    "~" * 16_000 + "b",
    "sin(" * 200 + "a" + ")" * 200,
    "a**" * 5000 + "a",
    "a.real" + ".real" * 5000,
    "a+" * 70_000 + "a",
    "a+" * 5000 + "a",
    "+".join(["sin(a)"] * 300),
    "sum(a)+" * 100 + "a",
    "a" * 70_000,
    "a b " * 20_000,
]
EVENTS = ("compile", "exec", "import", "open", "os.", "subprocess", "ctypes.dlopen", "object.__getattr__")


class Trap:
    """An object that tells of everything that is done with it."""

    def __init__(self, seen):
        object.__setattr__(self, "seen", seen)

    def __call__(self, *args):
        self.seen.append("called")

    def __getitem__(self, key):
        self.seen.append("indexed")


class Watch:
    """Notes what Python runs, imports or opens while it is on; hooks stay, so there is one."""

    on = False
    seen: list[str] = []

    def __call__(self, event, args):
        if Watch.on and event.startswith(EVENTS):
            Watch.seen.append(f"{event} {args}"[:200])


@pytest.fixture(scope="module")
def watch():
    fusec.evaluate("a + 1", {"a": np.ones(3)}, {})  # what evaluating imports is imported now
    for text in ("a + 1", "a +", "zz"):
        fusec.validate(text, {"a": 1.5}, {})
    with pytest.raises(fusec.FusecError):
        fusec.evaluate("a", {"a": object()}, {})
    sys.addaudithook(Watch())
    yield Watch
    Watch.on = False


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text)[:24])
def test_a_hostile_text_is_an_error_and_runs_nothing(text, watch):
    seen = []
    names = {"a": np.arange(3.0), "b": np.arange(3), "x": Trap(seen), "os": Trap(seen), "sin": Trap(seen)}
    watch.seen.clear()
    watch.on = True
    try:
        with pytest.raises(fusec.FusecError) as caught:
            fusec.evaluate(text, names, {"evaluate": Trap(seen), "open": Trap(seen)})
    finally:
        watch.on = False
    assert not seen
    assert not watch.seen
    assert len(str(caught.value)) < 2000
    str(caught.value).encode(errors="surrogateescape")


def test_an_expression_is_a_text():
    for wrong in (None, 1, b"a", ["a"], np.arange(3)):
        with pytest.raises(ValueError, match="must specify expression as a string"):
            fusec.evaluate(wrong, {}, {})


def test_what_is_allowed_passes():
    a, c = 3.0, 2.5 + 1.5j
    for text in ("a*2.e-5", "a*2e+5", "a*2E-5", "2.+a", "c.real", "c.imag", "1.5j", "3.j", "1.2e3+4.5e6j", "0x10 + a"):
        assert fusec.validate(text) is None
        assert fusec.evaluate(text) == eval(text)


def test_errors_are_those_that_numexpr_raises():
    a = np.arange(3.0)
    names = {"a": a, "i": np.arange(3)}
    for text, kind in {
        "2+": SyntaxError, "import os;": ValueError, "b": KeyError, "(a > 1) and (a < 2)": TypeError,
        "a.__class__": ValueError, "i ** -1": ValueError, "sum(a, axis=1)": ValueError, "a < [0]": ValueError,
    }.items():  # fmt: skip
        assert isinstance(fusec.validate(text, names, {}), kind)


def test_a_traceback_shows_the_whole_error():
    for text in ("a +", "b", "a.x", "not a"):
        with pytest.raises(fusec.FusecError) as caught:
            fusec.evaluate(text, {"a": 1}, {})
        assert str(caught.value) in "".join(traceback.format_exception(caught.value))
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_an_error_points_into_the_text():
    found = fusec.validate("1 +\n  speedd * 2", {"speed": 1}, {})
    assert isinstance(found, FusecKeyError)
    assert "did you mean 'speed'?" in str(found)
    assert (found.span.line, found.span.column, found.span.text) == (2, 3, "speedd")


TOKENS = (
    "a b c é 1 2.5 1j True None + - * / // % ** & | ^ ~ << >> < > == != ( ) , . = : ; [ ] real imag sin where sum"
    " axis max __class__ lambda if else and or not in is 'x' \n \t # \\ 0x1 1e5 @ ! $ \0 sum( where( sin( ) ( )"
).split(" ")


@given(st.lists(st.sampled_from(TOKENS), max_size=14))
@example(["sum", "(", "a", ",", "1", ")"])
@settings(max_examples=150, deadline=None)
def test_any_sequence_of_tokens_is_an_expression_or_an_error(tokens):
    names = {"a": np.ones((2, 3)), "b": np.arange(3), "c": True, "é": 1 + 1j}
    found = fusec.validate(" ".join(tokens), names, {})
    assert found is None or isinstance(found, fusec.FusecError)


@given(st.text(max_size=20))
@settings(max_examples=100, deadline=None)
def test_any_text_is_an_expression_or_an_error(text):
    found = fusec.validate(text, {}, {})
    assert found is None or isinstance(found, fusec.FusecError)
