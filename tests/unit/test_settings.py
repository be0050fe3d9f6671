"""Environment variables: one rule for values that mean nothing, one warning for names that nobody reads."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import fusec
from fusec import FusecError, FusecWarning
from fusec.environment import settings

ROOT = Path(__file__).parents[2]

WRONG = {
    "FUSEC_NUM_THREADS": ("2.5", "0", "-1", "1e3", "two", "٣"),
    "FUSEC_CACHE": ("maybe",),
    "FUSEC_CACHE_BYTES": ("1 GB", "-1"),
    "FUSEC_POOL_BYTES": ("1e9",),
    "FUSEC_CHECK": ("all", "bounds;wrap"),
    "FUSEC_DEBUG": ("7", "loud"),
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in WRONG.items() for text in texts])
def test_a_value_that_means_nothing_is_refused_whatever_is_compiled(monkeypatch, name, text):
    monkeypatch.setenv(name, text)
    with pytest.raises(FusecError, match=re.escape(f"{name} is {text!r}, but must be")) as caught:
        fusec.ElementwiseKernel("T x", "T y", "y = x + 1", f"settings_{len(text)}")(np.ones(3))
    assert caught.value.code == "F300"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("FUSEC_NUM_THREADS", " 4 ", 4),
        ("FUSEC_CACHE", "Off", False),
        ("FUSEC_CACHE", "1", True),
        ("FUSEC_CHECK", "wrap, bounds", "bounds,wrap"),
        ("FUSEC_CHECK", "0", ""),
        ("FUSEC_DEBUG", "6", 6),
        ("FUSEC_POOL_BYTES", "0", 0),
        ("FUSEC_DEBUG", "", None),
    ],
)
def test_values_are_read_as_the_table_says(monkeypatch, name, text, value):
    monkeypatch.setenv(name, text)
    assert settings.value_of(name) == value


@pytest.mark.parametrize(
    ("name", "meant"),
    [("FUSEC_NUM_THREAD", "FUSEC_NUM_THREADS"), ("FUSEC_DEBUGG", "FUSEC_DEBUG"), ("FUSEC_CHEKC", "FUSEC_CHECK")],
)
def test_a_name_that_is_nearly_one_is_warned_of_once(monkeypatch, name, meant):
    monkeypatch.setenv(name, "1")
    monkeypatch.setenv("FUSEC_SOMETHING_ELSE", "1")
    settings._warn.cache_clear()
    with pytest.warns(FusecWarning, match=f"{name} means nothing to fusec; did you mean {meant}") as caught:
        settings.check()
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        settings.check()


def test_the_page_shows_the_table_and_nothing_else_reads_the_environment():
    page = (ROOT / "docs" / "command_line.md").read_text()
    for each in settings.SETTINGS:
        assert f"| `{each.name}` | {each.meaning} |" in page
    for folder in ("fusec", "runtime"):
        for path in (ROOT / folder).rglob("*.py"):
            assert not re.search(r"environ\S*\"FUSEC_", path.read_text()), path


def test_the_version_of_the_environment_changes_with_every_variable(monkeypatch):
    first = settings.version()
    assert settings.version() == first
    monkeypatch.setenv("UNKNOWN_TO_FUSEC", "1")
    second = settings.version()
    assert second != first
    monkeypatch.delenv("UNKNOWN_TO_FUSEC")
    assert settings.version() not in (first, second)
