"""What the README, the page of kernel strings and that of the command line show runs, and is what fusec prints."""

import re
import shlex
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fusec.cli import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
KERNEL_STRINGS = (ROOT / "docs" / "kernel_strings.md").read_text()
COMMAND_LINE = (ROOT / "docs" / "command_line.md").read_text()
Names = dict[str, object]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Names:
    """The variables of a session into which all of the README's Python went, one block after the other."""
    pytest.importorskip("skimage", reason="the photograph is scikit-image's")
    found: Names = {"__name__": "readme"}
    for number, text in enumerate(re.findall(r"^```python\n(.*?)^```$", README, re.M | re.S)):
        path = tmp_path_factory.mktemp("readme") / f"block{number}.py"
        path.write_text(text)  # the text of decorated functions is read from there
        exec(compile(text, path, "exec"), found)
    return found


def block(page: str, after: str, language: str = "") -> str:
    """The first fenced block of a language after a text of a page."""
    found = re.search(rf"^```{language}\n(.*?)^```$", page[page.index(after) :], re.M | re.S)
    assert found is not None
    return found[1]


def test_the_cuda_text_is_printed_as_shown(capsys: pytest.CaptureFixture[str]) -> None:
    command = block(KERNEL_STRINGS, "# Kernel strings").strip().removeprefix("$ fusec ")
    assert main.main(shlex.split(command)) == 0
    assert capsys.readouterr().out.endswith(block(KERNEL_STRINGS, "# Kernel strings", "cuda"))


def test_the_error_is_printed_as_shown(capsys: pytest.CaptureFixture[str]) -> None:
    command, _, shown = block(README, "## Mistakes are explained").partition("\n")
    assert main.main(shlex.split(command.removeprefix("$ fusec "))) == 1
    assert capsys.readouterr().err == shown


def test_the_function_becomes_the_cuda_text_shown(names: Names) -> None:
    shown = block(README, "# fusec", "cuda").removesuffix("}\n")
    source: Callable[[str], str] = names["edges"].source  # type: ignore[attr-defined]
    assert textwrap.indent(shown, " " * 8) in source("cuda")


def test_the_example_makes_the_same_picture_of_the_same_function(names: Names) -> None:
    example = (ROOT / "examples/01_edges.py").read_text()
    shown = block(README, "# fusec", "python")
    assert shown[shown.index("@fusec") : shown.index("photo")] in example + "\n"
    assert getattr(names["steep"], "shape", None) == (512, 512)
    assert (ROOT / "docs/edges.png").stat().st_size < 60_000


def test_all_blocks_run_and_give_what_they_say(names: Names) -> None:
    assert str(names["gelu"](np.zeros(3, "float32")).dtype) == "float32"  # type: ignore[operator]
    softmax = names["softmax"].explain(np.ones((1000, 256)))  # type: ignore[attr-defined]
    assert re.search(r"kernels +1\n", str(softmax))
    np.testing.assert_allclose(np.asarray(names["p"]).sum(axis=1), 1, rtol=1e-5)


def test_the_kernel_file_compiles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kernels.toml"
    path.write_text(block(COMMAND_LINE, "## Kernel files", "toml"))
    assert main.main(["compile", str(path), "--target", "metal"]) == 0
    assert "float a" in capsys.readouterr().out


def test_the_command_for_a_function_compiles_the_readmes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mypackage").mkdir()
    text = block(README, "### A Python function of one element", "python")
    (tmp_path / "mypackage" / "kernels.py").write_text(f"import fusec\nimport numpy as np\n{text}")
    monkeypatch.chdir(tmp_path)
    command = next(line for line in COMMAND_LINE.splitlines() if "mypackage.kernels:gelu" in line)
    assert main.main(command.split()[1:]) == 0
    assert "fusec.gelu" in capsys.readouterr().out


def test_commands_and_settings_exist() -> None:
    source = "\n".join(path.read_text() for folder in ("fusec", "runtime") for path in ROOT.glob(
        f"{folder}/**/*.py"
    ))  # fmt: skip
    for setting in set(re.findall(r"`(FUSEC_\w+)`", README + COMMAND_LINE)):
        assert f'"{setting}"' in source
