"""The names that `dir` shows for the kernels of users, whatever their kind."""

from __future__ import annotations

VERBS = frozenset(
    """
    explain source clear_cache cached_codes run
    name fp params in_params out_params nin nout nargs outputs input_names constants signature
    operation preamble kwargs reduce_dims no_return return_tuple identity reduce_type inclusive segments block
    otypes pyfunc
    """.split()
)
"""What users do with a kernel, and what they can ask of it; `dir` lists those that a kind has."""


class Public:
    """A kernel whose `dir` shows Python's own names and VERBS, and no internals."""

    def __dir__(self) -> list[str]:
        return sorted(name for name in object.__dir__(self) if name in VERBS or name.startswith("__"))
