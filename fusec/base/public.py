"""The names that `dir` shows for the kernels of users, whatever their kind."""

from __future__ import annotations

from abc import ABC, abstractmethod

VERBS = frozenset(
    """
    explain source clear_cache cached_codes run
    name fp params in_params out_params nin nout nargs outputs input_names constants signature
    operation preamble kwargs reduce_dims no_return return_tuple identity reduce_type inclusive segments block
    otypes pyfunc
    """.split()
)
"""What users do with a kernel, and what they can ask of it; `dir` lists those that a kind has."""


class Public(ABC):
    """A kernel as its users see it: what `dir`, `help` and notebooks show of it."""

    @abstractmethod
    def described(self) -> tuple[str, str]:
        """The signature of the kernel, and its text."""

    def document(self, own: str | None = None) -> None:
        """Give the kernel a docstring: its own, or else its signature and its text."""
        self.__doc__ = own or "\n\n".join(filter(None, self.described()))

    def __dir__(self) -> list[str]:
        """Python's own names and VERBS, and no internals."""
        return sorted(name for name in object.__dir__(self) if name in VERBS or name.startswith("__"))

    def _repr_html_(self) -> str:
        from html import escape

        signature, text = map(escape, self.described())
        return f"<b>{signature}</b><pre>{text}</pre>"
