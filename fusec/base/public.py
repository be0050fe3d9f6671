"""The names that `dir` shows for the kernels of users, whatever their kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspect import Signature

VERBS = frozenset(
    """
    explain source graph compile clear_cache cached_codes run
    name fp params in_params out_params nin nout nargs outputs input_names constants signature
    operation preamble kwargs reduce_dims no_return return_tuple identity reduce_type inclusive segments block
    otypes pyfunc
    """.split()
)
"""What users do with a kernel, and what they can ask of it; `dir` lists those that a kind has."""


LATER: dict[str, Callable[[], Any]] = {}
"""What lower floors ask of higher ones at run time, by public names; the package states it when it is imported."""


class CallSignature:
    """What `inspect.signature` finds of the calls of a kernel; a class has that of its constructor, as ever."""

    def __get__(self, kernel: Any, owner: type | None = None) -> Signature | None:
        return None if kernel is None else kernel.call_signature()


class AsWritten(str):
    """A default as the text of a function has it."""

    __slots__ = ()
    __repr__ = str.__str__


def signature_of(params: Mapping[str, str | None], options: Mapping[str, object]) -> Signature:
    """The signature of calls. params: with the text of their defaults, if any. options: with their defaults."""
    from inspect import Parameter, Signature

    own = [
        Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=Parameter.empty if text is None else AsWritten(text))
        for name, text in params.items()
    ]
    return Signature([*own, *(Parameter(each, Parameter.KEYWORD_ONLY, default=options[each]) for each in options)])


class Public(ABC):
    """A kernel as its users see it: what `dir`, `help` and notebooks show of it."""

    explain: Callable[..., Any]

    @abstractmethod
    def described(self) -> tuple[str, str]:
        """The signature of the kernel, and its text."""

    def document(self, own: str | None = None) -> None:
        """Give the kernel a docstring: its own, or else its signature and its text."""
        self.__doc__ = own or "\n\n".join(filter(None, self.described()))

    def compile(self, *args: Any, **options: Any) -> None:
        """Compile what a call with these arguments runs, so that none is interpreted meanwhile. Nothing is run.

        args, options: all those of the call.
        """
        self.explain(*args, **options)

    def __dir__(self) -> list[str]:
        """Python's own names and VERBS, and no internals."""
        return sorted(name for name in object.__dir__(self) if name in VERBS or name.startswith("__"))

    def _repr_html_(self) -> str:
        from html import escape

        signature, text = map(escape, self.described())
        return f"<b>{signature}</b><pre>{text}</pre>"
