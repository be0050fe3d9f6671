"""What the README shows is what the command prints."""

import re
import shlex
from pathlib import Path

import pytest

from fusec import cli

README = (Path(__file__).parents[2] / "README.md").read_text()


def block(after: str, language: str = "") -> str:
    """The first fenced block of a language after a text."""
    found = re.search(rf"^```{language}\n(.*?)^```$", README[README.index(after) :], re.M | re.S)
    assert found is not None
    return found[1]


def test_the_cuda_text_is_printed_as_shown(capsys: pytest.CaptureFixture[str]) -> None:
    command = block("## What a kernel can say").strip().removeprefix("$ fusec ")
    assert cli.main(shlex.split(command)) == 0
    assert capsys.readouterr().out.endswith(block("## What a kernel can say", "cuda"))


def test_the_error_is_printed_as_shown(capsys: pytest.CaptureFixture[str]) -> None:
    command, _, shown = block("## Mistakes are explained").partition("\n")
    assert cli.main(shlex.split(command.removeprefix("$ fusec "))) == 1
    assert capsys.readouterr().err == shown


def test_the_first_program_runs() -> None:
    names: dict[str, object] = {}
    exec(block("# fusec", "python"), names)
    assert getattr(names["z"], "shape", None) == (1_000_000,)


def test_the_kernel_file_compiles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kernels.toml"
    path.write_text(block("A kernel file is TOML", "toml"))
    assert cli.main(["compile", str(path), "--target", "metal"]) == 0
    assert "float a" in capsys.readouterr().out


def test_commands_and_settings_exist() -> None:
    source = "\n".join(path.read_text() for folder in ("fusec", "runtime") for path in Path(__file__).parents[2].glob(
        f"{folder}/**/*.py"
    ))  # fmt: skip
    for setting in set(re.findall(r"`(FUSEC_\w+)`", README)):
        assert f'"{setting}"' in source
