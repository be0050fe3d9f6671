"""What answers calls of kernels in place of running them: explain and source note them, simulate interprets them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from fusec.base.contexts import INTERCEPTOR, holding

PlainCall = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""A call of a kernel that takes no fast path, on which nothing is intercepted: a function, arguments and options."""


class Interceptor(Protocol):
    """Answers calls of kernels; kernels are those of `planned`, which look for it."""

    runs: bool  # outputs hold results, and may be kept

    def call(self, kernel: Any, args: tuple[object, ...], out: object, options: Any) -> tuple[object, ...]:
        """All outputs of a call of a kernel."""


present: Callable[[], Interceptor | None] = INTERCEPTOR.get
"""The interceptor of calls in this context, None if they run; what has fast paths asks before it takes one."""


def intercepted(by: Interceptor) -> AbstractContextManager[None]:
    """Answer the calls of kernels in this context in another way."""
    return holding(INTERCEPTOR, by)
