"""A plugin for pytest under which Hypothesis draws the same examples, whatever kernels are in the cache.

Hypothesis draws constants of the modules that are imported, and a compiler whose kernels are all cached imports less.
"""

from importlib import import_module
from pkgutil import walk_packages

import fusec.grammar
import fusec.runtime


def pytest_configure() -> None:
    """Import every module of fusec."""
    places = {"fusec.": fusec.__path__[:1], "fusec.grammar.": fusec.grammar.__path__}
    places["fusec.runtime."] = fusec.runtime.__path__
    for prefix, paths in places.items():
        for each in walk_packages(paths, prefix):
            if not each.name.endswith("__main__"):
                import_module(each.name)
