"""Collections of garbage leave out what was there before a module's tests began.

Some tests ask for hundreds of collections, each of which would go through all that a long run has imported, collected
and compiled by then: that made these tests ten times as slow as they are alone.

First calls wait for the compiler, so that tests see compiled code; tests of the tiers interpret them.

Writes to parts of lazy arrays are recorded for the first few parts of arrays of a shape, and done at once for others:
the tests of a module begin as a new process does, whatever parts other modules have written.

Where Python is to write no bytecode beside sources, it goes into the folder of pytest's cache: else each process that
tests start would compile all of fusec, and each run of the tests all of them.
"""

import gc
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("FUSEC_TIERS", "0")


def pytest_configure(config: pytest.Config) -> None:
    cache = getattr(config, "cache", None)
    if sys.dont_write_bytecode and cache is not None:
        folder, temporary = cache.mkdir("bytecode"), Path(tempfile.gettempdir())
        shutil.rmtree(folder / temporary.relative_to(temporary.anchor), ignore_errors=True)  # of other runs
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(folder)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        sys.dont_write_bytecode = False


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every", type=int, default=1, metavar="N", help="run every N-th case of each test")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of many like cases the default run takes every n-th, and the rest are slow.

    Folders whose files take a second or are skipped come last, so that processes that share files end together."""
    cases, left_out = Counter[str](), list[pytest.Item]()
    for item in items:
        sampled, name = item.get_closest_marker("sampled"), item.nodeid.partition("[")[0]
        if sampled is not None and cases[name] % sampled.args[0]:
            item.add_marker(pytest.mark.slow)
        if cases[name] % config.getoption("every"):
            left_out.append(item)
        cases[name] += 1
    if others := {*left_out}:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [each for each in items if each not in others]
    items.sort(key=lambda item: item.path.parent.name in ("conformance", "errors", "golden", "gpu"))


@pytest.fixture(scope="module", autouse=True)
def _collections_skip_what_was_there() -> None:
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _no_parts_are_remembered() -> None:
    forms = sys.modules.get("fusec.xp.forms")
    for each in [*forms._FORMS.values()] if forms is not None else ():
        each.places = each.reads = ()


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads take turns all the time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)
