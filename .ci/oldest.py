"""Prints the oldest version of every dependency that pyproject.toml allows, as pip's requirements."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
for requirement in (*project["dependencies"], *extras["cuda"], *extras["test"]):
    found = re.fullmatch(r"([\w.\[\]-]+)>=([\w.]+)", requirement)
    assert found, f"{requirement!r} names no oldest version"
    print(f"{found[1]}=={found[2]}")
