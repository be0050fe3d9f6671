"""FUSEC_DEBUG and FUSEC_DUMP show every stage of a kernel, whether or not it was compiled before."""

import itertools
import os
from pathlib import Path

import numpy as np
import pytest

from fusec import ElementwiseKernel, FusecError
from fusec.compiler import pipeline
from fusec.environment import debug

LINES = {1: "fusec: shown ", 2: "fusec: shown(float32 x, float32 z): "}
TITLES = {3: "shown after ", 4: "shown loops for llvm", 5: "shown llvm", 6: "shown assembly"}


def run_one() -> None:
    """A kernel made anew, with its calls."""
    kernel = ElementwiseKernel("float32 x", "float32 z", "z = x * 3 - 1", "shown")
    assert np.asarray(kernel(np.float32([1, 2]))).tolist() == [2, 5]


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that holds the kernel already."""
    monkeypatch.delenv("FUSEC_CACHE", raising=False)
    monkeypatch.delenv("FUSEC_DUMP", raising=False)
    monkeypatch.setenv("FUSEC_CACHE_DIR", str(tmp_path / "cache"))
    run_one()
    pipeline.forget_executables()
    return tmp_path


@pytest.mark.parametrize("level", range(7))
def test_each_level_adds_one_kind_of_text(
    level: int, own_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FUSEC_DEBUG", str(level))
    run_one()
    said = capsys.readouterr().err
    for at, text in (LINES | TITLES).items():
        assert (text in said) == (at <= level)
    assert ("from the disk cache in" in said) == (level in (1, 2))
    assert ("compiled in" in said) == (level > 2)
    run_one()
    assert ("from memory in" in capsys.readouterr().err) == (level in (1, 2))


def test_a_dump_alone_holds_them_all(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("FUSEC_DEBUG", raising=False)
    monkeypatch.setenv("FUSEC_DUMP", str(own_cache / "dump" / "deep"))
    run_one()
    assert capsys.readouterr().err == ""
    folder = own_cache / "dump" / "deep"
    log = (folder / "log.txt").read_text()
    assert all(line.removeprefix("fusec: ") in log for line in LINES.values())
    names = sorted(path.name for path in folder.glob("[0-9]*.txt"))
    assert [names[0].partition("_")[2], names[-1].partition("_")[2]] == [
        "shown_after_the_front_end.txt",
        "shown_assembly.txt",
    ]
    for title in TITLES.values():
        assert any(title.replace(" ", "_") in name for name in names)
    assert "define" in next(folder.glob("*_shown_llvm.txt")).read_text()


def test_walks_of_short_rows_are_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FUSEC_DEBUG", "4")
    kernel = ElementwiseKernel("float32 x, float32 y", "float32 z", "z = x + y", "shown")
    assert kernel(np.ones((40, 3), "f4"), np.ones(3, "f4")).sum() == 240
    assert "#   x: next row, next element\n#   y: stays, next element\n" in capsys.readouterr().err


@pytest.mark.parametrize("level", ["loud", "7", "-1", "2.5"])
def test_a_level_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, level: str) -> None:
    monkeypatch.setenv("FUSEC_DEBUG", level)
    with pytest.raises(FusecError, match=f"FUSEC_DEBUG is '{level}', but must be a number from 0 to 6"):
        debug.level()


def test_a_dump_that_cannot_be_written_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FUSEC_DUMP", str(tmp_path / "file"))
    run_one()
    assert "FUSEC_DUMP: nothing is written" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "value"), [("FUSEC_CACHE", "maybe"), ("FUSEC_CACHE_BYTES", "1G")])
def test_settings_of_the_cache_that_mean_nothing_are_refused(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=rf"{name} is '{value}', but must be"):
        run_one()


@pytest.mark.skipif(os.name == "nt", reason="links and owners are those of POSIX")
def test_a_dump_writes_through_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a folder that others write to as well, such as /tmp, they may have guessed the names."""
    precious, folder = tmp_path / "precious", tmp_path / "dump"
    precious.write_text("kept")
    folder.mkdir()
    monkeypatch.setenv("FUSEC_DUMP", str(folder))
    for make in ("symlink_to", "hardlink_to"):
        (folder / "log.txt").unlink(missing_ok=True)
        getattr(folder / "log.txt", make)(precious)
        debug._warn.cache_clear()
        debug.show(1, "a line")
        assert precious.read_text() == "kept"
        assert "nothing is written" in capsys.readouterr().err
    (folder / "log.txt").unlink()
    monkeypatch.setattr(debug, "_numbers", itertools.count())
    (folder / "0000_title.txt").symlink_to(precious)
    debug.show(1, "title", "text")
    assert precious.read_text() == "kept"
    debug.show(1, "title", "text")
    assert (folder / "0001_title.txt").read_text() == "text"
    debug.show(1, "a line")
    debug.show(1, "another")
    assert (folder / "log.txt").read_text() == "a line\nanother\n"
