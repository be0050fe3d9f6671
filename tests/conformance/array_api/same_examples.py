"""A pytest plugin that makes Hypothesis draw the same examples, whatever kernels are in the cache.

Hypothesis draws constants from imported modules, and fewer modules are imported if all kernels are cached.
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
