"""The pages name files, modules and functions that exist, and their lines are not too long."""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
PAGES += [*sorted((ROOT / "docs").glob("*.md")), ROOT / "tests/gpu/OWED.md", ROOT / "benchmarks/README.md"]
ALL = [*PAGES, ROOT / "CHANGELOG.md"]  # which may name what is gone
FOLDERS = "fusec|runtime|grammar|tests|docs|tools|benchmarks|examples"
PACKAGES = {path.parent.name for root in (ROOT, ROOT / "fusec") for path in root.glob("*/__init__.py")} - {"math"}
MAP = {"ARCHITECTURE.md", "CONTRIBUTING.md"}  # elsewhere a bare file name may be one of the reader's own


def quoted(page: Path) -> Iterator[str]:
    """What stands in backticks, apart from blocks of code."""
    prose = re.sub(r"(?ms)^\s*```.*?^\s*```", "", page.read_text())
    yield from re.findall(r"`([^`]+)`", prose)


def found(name: str) -> bool:
    """Whether a dotted name is a module, or what a module or a class holds; the first part may stand in fusec."""
    whole = (name if name.startswith(("fusec.", "tests.", "tools.", "benchmarks.")) else f"fusec.{name}").split(".")
    for split in range(len(whole), 0, -1):
        module, rest = whole[:split], whole[split:]
        try:
            thing: object = importlib.import_module(".".join(module))
        except ModuleNotFoundError:
            continue
        for part in rest:
            thing = inspect.getattr_static(thing, part, None) if inspect.isclass(thing) else getattr(thing, part, None)
        return thing is not None
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_a_page_names_files_that_exist(page: Path) -> None:
    text = page.read_text()  # which may name links that a checkout need not have
    for path in re.findall(rf"(?<![\w/.])(?:{FOLDERS})/[\w/.*-]*\w", text):
        assert list(ROOT.glob(path.replace("fusec/grammar", "grammar").replace("fusec/runtime", "runtime"))), path
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / link).exists(), link
    if page.name in MAP:
        names = {path.name for path in ROOT.rglob("*.py")}
        assert set(re.findall(r"(?<![\w/.*])\w+\.py\b", text)) <= names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_a_page_names_what_modules_hold(page: Path) -> None:
    for name in quoted(page):
        dotted = re.match(r"(?:python -m )?([a-z_]\w*(?:\.\w+)+)(?:\(|$)", name)
        if dotted and dotted[1].partition(".")[0] in PACKAGES and not dotted[1].endswith((".py", ".md")):
            assert found(dotted[1]) or found(dotted[1].replace("ir.", "ir.loops.")), name  # which is imported as ir


@pytest.mark.parametrize("page", ALL, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_links_to_headings_lead_somewhere(page: Path) -> None:
    for link, heading in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
        titles = re.findall(r"(?m)^#+ (.*)$", (page.parent / link if link else page).read_text())
        assert heading in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}, heading


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_excerpts_are_set_as_messages_set_them(page: Path) -> None:
    for arrow, bar, number in re.findall(r"(?m)^( +)-->.*\n( +)\|\n +(\d+) \|", page.read_text()):
        assert len(bar) == len(arrow) + 1, number
        assert len(bar) % 4 == len(number) + 1, number


@pytest.mark.parametrize("page", ALL, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_lines_of_prose_fit_a_hundred_columns(page: Path) -> None:
    prose = re.sub(r"(?ms)^```(?!\n(?:fusec|__main__)).*?^```", "", page.read_text())  # the map is prose, too
    assert [line for line in prose.splitlines() if len(line) > 100 and line[0] != "|"] == []
