"""The part of cupy.testing._loops that the tests import."""

import functools
import inspect


def _wraps_partial_xp(test, *names):
    """A decorator: the same test for pytest, but for the arguments that the decorator gives."""

    def decorate(run):
        run = functools.wraps(test)(run)
        kept = inspect.signature(test)
        run.__signature__ = kept.replace(
            parameters=[each for each in kept.parameters.values() if each.name not in names]
        )
        del run.__wrapped__
        return run

    return decorate
