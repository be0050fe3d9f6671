"""The definitions of kernel strings and of reductions in texts, as plain values."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fusec.base.rounding_mode import default_rounding
from fusec.frontends.c.texts import KernelTexts, ReductionTexts

if TYPE_CHECKING:
    from fusec.frontends.c.lower import ParsedKernel
    from fusec.frontends.c.reductions import ParsedReduction


class Definition(KernelTexts):
    """A kernel, as its texts say."""

    @property
    def texts(self) -> dict[str, Any]:
        """All fields by name."""
        return dict(vars(self))

    @lru_cache(maxsize=256)  # noqa: B019 - definitions are values, and the parsed texts of the last ones stay
    @default_rounding()
    def read(self) -> ParsedKernel:
        """The parsed texts. Raises the front end's errors."""
        from fusec.frontends.c import lower

        return lower.parse(self)


class ReductionDefinition(ReductionTexts):
    """A reduction, as its texts say."""

    @property
    def texts(self) -> dict[str, Any]:
        """All fields by name; an identity that is a number appears as text."""
        return {name: value for name, value in vars(self).items() if name != "number"}

    @lru_cache(maxsize=256)  # noqa: B019 - as above
    @default_rounding()
    def read(self) -> ParsedReduction:
        """The parsed texts. Raises the front end's errors."""
        from fusec.frontends.c import reductions

        return reductions.parse(self)
