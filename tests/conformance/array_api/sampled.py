"""A plugin of pytest that keeps a few tests of each function, evenly spaced, since whole suites take hours.

Load it behind the plugin of the client: ``-p tests.conformance.array_api.sampled --each 1``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--each", type=int, default=1, help="how many tests of each function to run")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Deselect the others, once -k and -m have."""
    yield
    of_function = defaultdict(list)
    for each in items:
        of_function[each.location[0], each.location[2].partition("[")[0]].append(each)
    kept = {id(each) for group in of_function.values() for each in _spaced(group, config.getoption("--each"))}
    config.hook.pytest_deselected(items=[each for each in items if id(each) not in kept])
    items[:] = [each for each in items if id(each) in kept]


def _spaced(group: list[pytest.Item], count: int) -> list[pytest.Item]:
    """So many of a group, or all if there are fewer."""
    count = min(count, len(group))
    return [group[(2 * at + 1) * len(group) // (2 * count)] for at in range(count)]
