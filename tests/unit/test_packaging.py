"""What gets installed is what lies in the folders, no more and no less."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOLDERS = {"fusec": "fusec", "grammar": "fusec.grammar", "runtime": "fusec.runtime"}
BUILD_BOTH = """
import sys
from setuptools import build_meta
out = sys.argv[1]  # the hooks overwrite sys.argv
build_meta.build_sdist(out)
build_meta.build_wheel(out)
"""
IMPORT_EVERYTHING = """
import fusec, importlib, pkgutil, sys
names = [row.name for row in pkgutil.walk_packages(fusec.__path__, "fusec.")]
for name in names:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name.split(".")[0] not in ("cuda", "objc", "Metal"):
            raise
print(fusec.__file__, len(names))
"""


def installed_files() -> dict[str, Path]:
    """What must be in a wheel, by its name there."""
    found = {}
    for folder, name in FOLDERS.items():
        for path in (ROOT / folder).rglob("*"):
            inside = path.relative_to(ROOT / folder)
            link = folder == "fusec" and inside.parts[0] in FOLDERS
            if path.suffix in (".py", ".lark", ".json", ".typed") and not link:
                found["/".join((*name.split("."), *inside.parts))] = path
    return found


def test_the_package_list_names_every_folder_with_code() -> None:
    folders = {name.rpartition("/")[0].replace("/", ".") for name in installed_files() if name.endswith("__init__.py")}
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == folders | {"fusec.docs"}


def test_pages_that_messages_name_are_installed() -> None:
    """`fusec doctor` says where; MANIFEST.in and pyproject.toml take all pages."""
    assert PROJECT["tool"]["setuptools"]["package-dir"]["fusec.docs"] == "docs"
    assert PROJECT["tool"]["setuptools"]["package-data"]["fusec.docs"] == ["*.md"]
    named = {
        page
        for path in [*(ROOT / "fusec").rglob("*.py"), *(ROOT / "runtime").rglob("*.py")]
        for page in re.findall(r"docs/(\w+\.md)", path.read_text())
    }
    assert "python.md" in named
    assert {page for page in named if not (ROOT / "docs" / page).is_file()} == set()


def test_every_folder_with_code_is_a_package() -> None:
    names = installed_files()
    for name in names:
        if name.endswith(".py"):
            assert name.rpartition("/")[0] + "/__init__.py" in names, f"{name} lies in a folder without __init__.py"


def test_the_version_is_written_once_and_reported() -> None:
    import fusec

    assert fusec.__version__ == PROJECT["project"]["version"]


def test_a_checkout_without_links_works_where_nothing_is_installed(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__", "grammar", "runtime")
    shutil.copytree(ROOT / "fusec", tmp_path / "fusec", ignore=ignored)
    for folder in ("grammar", "runtime"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    program = "import fusec, numpy; print(fusec.__path__[0], fusec.sum(numpy.ones(3)), fusec.cumsum([1, 2]))"
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "FUSEC_CACHE": "0"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"{tmp_path / 'fusec'} 3.0 [1 3]"


@pytest.fixture(scope="module")
def dists(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist, built from a copy so that the checkout stays clean."""
    copy = tmp_path_factory.mktemp("copy") / "fusec"
    ignored = shutil.ignore_patterns(
        ".git", ".*cache", ".venv", ".ci-venv", "build", "dist", "*.egg-info", "__pycache__"
    )
    shutil.copytree(ROOT, copy, symlinks=True, ignore=ignored)
    out = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-c", BUILD_BOTH, str(out)], cwd=copy, check=True, capture_output=True)
    return out


@pytest.mark.slow
def test_a_wheel_holds_every_file_and_nothing_else(dists: Path) -> None:
    (wheel,) = dists.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert {name for name in names if not name.endswith(".md")} == set(installed_files())
    assert {f"fusec/docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} <= names


@pytest.mark.slow
def test_an_sdist_holds_what_a_wheel_and_the_tests_need(dists: Path) -> None:
    (sdist,) = dists.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {str(path.relative_to(ROOT)) for path in installed_files().values()} <= names
    others = {"pyproject.toml", "LICENSE", "README.md", "tests/unit/test_packaging.py", ".ci/run", "tools/fits.py"}
    others |= {"docs/python.md", "docs/edges.png"}
    assert others <= names


@pytest.mark.slow
def test_an_installed_wheel_imports_everything(dists: Path, tmp_path: Path) -> None:
    (wheel,) = dists.glob("*.whl")
    venv.create(tmp_path, with_pip=False)
    (site,) = tmp_path.rglob("site-packages")
    zipfile.ZipFile(wheel).extractall(site)
    dependencies = [path for path in sys.path if path.endswith("site-packages")]
    (site / "dependencies.pth").write_text("\n".join(dependencies))  # their own .pth files are not read
    python = tmp_path / "bin" / "python"
    run = subprocess.run([python, "-c", IMPORT_EVERYTHING], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    file, count = run.stdout.split()
    assert Path(file).is_relative_to(tmp_path)
    assert int(count) > 20
