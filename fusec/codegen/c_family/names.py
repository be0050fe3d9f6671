"""Names in C text: the user's own where they are free, else with a number appended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

CXX_WORDS = frozenset(
    """alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class compl
    concept const const_cast consteval constexpr constinit continue co_await co_return co_yield decltype default delete
    do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable
    namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
    requires restrict return short signed sizeof static static_assert static_cast struct switch template this
    thread_local throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor
    xor_eq main NULL complex64 complex128""".split()
)


class ScopeNames:
    """Gives out names that are unique in a scope and in all scopes around it."""

    def __init__(self, reserved: Iterable[str] = (), outer: ScopeNames | None = None) -> None:
        self._taken = set(reserved)
        self._outer = outer

    def is_taken(self, name: str) -> bool:
        """True if the name already has a meaning here."""
        return name in self._taken or (self._outer is not None and self._outer.is_taken(name))

    def fresh_all(self, wanted: Sequence[str]) -> dict[str, str]:
        """A name for each, preferably the user's; names that start with an underscore are fusec's own."""
        return {name: self.fresh(name) for name in sorted(wanted, key=lambda name: name.startswith("_"))}

    def fresh(self, wanted: str) -> str:
        """`wanted`, made an identifier, or the first of wanted_2, wanted_3, ... that is free.

        Names that start with an underscore, which C++ reserves, lose it; give them out after all others.
        """
        name = base = _identifier(wanted)
        number = 1
        while self.is_taken(name):
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name


def _identifier(text: str) -> str:
    """Letters outside ASCII by their code point; two underscores in a row are reserved in C++."""
    spelled = "".join(
        char if char.isascii() and (char.isalnum() or char == "_") else f"u{ord(char):x}" for char in text
    )
    while "__" in spelled:
        spelled = spelled.replace("__", "_")
    spelled = spelled.lstrip("_")
    if spelled[:1].isdigit():
        spelled = "v" + spelled
    return spelled or "v"
