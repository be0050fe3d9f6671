"""docs/python.md describes the Python subset as the grammar and the tables have it."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_tool_writes():
    spec = importlib.util.spec_from_file_location("python_docs", ROOT / "tools" / "python_docs.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert (ROOT / "docs" / "python.md").read_text() == tool.page(), "run python tools/python_docs.py"
