"""LALR(1) tables of a grammar: made by lark once, kept as plain JSON on disk, and driven without importing lark.

Tables are data - numbers and names - so a spoilt cache file can at worst give a wrong parse, never run code. They are
read only from a private folder of the user: FUSEC_CACHE_DIR, else ~/.cache/fusec.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

FORMAT = 1
EXPAND = 1 << 20  # added to the position of a child that is a list to be spliced in
ABSENT = -1  # stands for an optional part that is missing

Callback = Callable[[Any, list[Any]], Any]


class Token(Protocol):
    """What the driver needs of a token."""

    @property
    def type(self) -> str:
        """Name of the terminal."""


class UnexpectedSymbolError(Exception):
    """A token that no rule allows here: the token (None for the end of the text) and the terminals that would do."""

    def __init__(self, token: Any, expected: frozenset[str]) -> None:
        super().__init__(token, expected)
        self.token = token
        self.expected = expected


@dataclass(frozen=True)
class Rule:
    """One production: what it makes, how many symbols it takes, which of them its callback gets, and the callback.

    shape: positions of the children, EXPAND added where a list is spliced in, ABSENT for a missing optional part.
    lift: a single child stands for the whole.
    """

    origin: str
    size: int
    callback: str
    shape: tuple[int, ...]
    lift: bool

    @property
    def is_unit(self) -> bool:
        """True if a reduction changes the state and not the value."""
        return self.lift and self.size == 1 and self.shape == (0,)


@dataclass(frozen=True)
class Tables:
    """The automaton: for every state the action on each symbol - n >= 0 shifts to state n, -r-1 reduces by rule r.

    words: spelling -> terminal, for the terminals that have fixed spellings.
    """

    states: tuple[dict[str, int], ...]
    rules: tuple[Rule, ...]
    starts: Mapping[str, int]
    ends: Mapping[str, int]
    words: Mapping[str, str]
    units: tuple[str, ...]

    def parse(self, tokens: Iterable[Token], start: str, callbacks: tuple[Callback, ...], builder: object) -> Any:
        """The value of the start rule's callback, in time linear in the tokens and without recursion.

        callbacks: from `bind`, for the class of `builder`. Raises UnexpectedSymbolError.
        """
        states, rules, units = self.states, self.rules, self.units
        stack = [self.starts[start]]
        values: list[Any] = [None]
        end = self.ends[start]
        for token in (*tokens, None):
            symbol = "$END" if token is None else token.type
            while True:
                action = states[stack[-1]].get(symbol)
                if action is None:
                    raise UnexpectedSymbolError(
                        token, frozenset(s for s in states[stack[-1]] if s.isupper() or s == "$END")
                    )
                if action >= 0:
                    stack.append(action)
                    values.append(token)
                    break
                number = -action - 1
                if units[number]:
                    stack[-1] = states[stack[-2]][units[number]]
                else:
                    rule = rules[number]
                    children = values[len(values) - rule.size :]
                    del stack[len(stack) - rule.size :], values[len(values) - rule.size :]
                    stack.append(states[stack[-1]][rule.origin])
                    values.append(callbacks[number](builder, children))
                if token is None and stack[-1] == end:
                    return values[-1]
        raise AssertionError("the end of the text ends every parse")

    def bind(self, builder: type) -> tuple[Callback, ...]:
        """One function for every rule, from the methods of a class (named as the rule or its alias)."""
        return tuple(_bind(rule, builder) for rule in self.rules)


def _bind(rule: Rule, builder: type) -> Callback:
    """The function of a rule: gives the method the children that the rule keeps."""
    if rule.lift and len(rule.shape) == 1 and rule.shape[0] < EXPAND:
        only = rule.shape[0]
        return lambda _, children: children[only]
    make: Callback = _collect if rule.callback.startswith("_") else getattr(builder, rule.callback)
    if rule.shape == tuple(range(rule.size)) and not rule.lift:
        return make
    shape, lift = rule.shape, rule.lift

    def shaped(owner: object, children: list[Any]) -> Any:
        kept: list[Any] = []
        for at in shape:
            if at == ABSENT:
                kept.append(None)
            elif at < EXPAND:
                kept.append(children[at])
            elif kept:
                kept += children[at - EXPAND]
            else:
                kept = children[at - EXPAND]  # a repetition grows in place
        return kept[0] if lift and len(kept) == 1 else make(owner, kept)

    return shaped


def _collect(_: object, children: list[Any]) -> list[Any]:
    """The list that a repetition collects."""
    return children


# --- making and keeping tables ----------------------------------------------------------------------------------


@cache
def load(grammar: str, starts: tuple[str, ...]) -> Tables:
    """The tables of ``grammar/NAME.lark``, from the cache folder if they are there."""
    with _lock:
        text = (resources.files("fusec.grammar") / f"{grammar}.lark").read_text(encoding="utf-8")
        return load_tables(text, starts, table_folder())


_lock = threading.Lock()


def load_tables(text: str, starts: tuple[str, ...], folder: Path | None) -> Tables:
    """The tables of a grammar text; read from and written to `folder` unless it is None."""
    key = hashlib.sha256(f"{FORMAT} {starts} {text}".encode()).hexdigest()[:24]
    path = folder / f"grammar-{key}.tables" if folder is not None else None
    if path is not None:
        kept = _read(path)
        if kept is not None:
            return kept
    data = _generate(text, starts)
    if path is not None:
        _write(path, data)
    return _revive(json.loads(json.dumps(data)))


def table_folder() -> Path | None:
    """The private folder for tables, made if need be; None if there is no folder that only this user can write."""
    named = os.environ.get("FUSEC_CACHE_DIR")
    try:
        folder = Path(named) if named else Path.home() / ".cache" / "fusec"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except (OSError, RuntimeError):
        return None
    if os.name == "posix" and (found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o022):
        return None
    return folder


def _read(path: Path) -> Tables | None:
    try:
        digest, _, payload = path.read_bytes().partition(b"\n")
        if hashlib.sha256(payload).hexdigest().encode() != digest:
            return None  # cut short or changed
        return _revive(json.loads(payload))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _write(path: Path, data: Mapping[str, object]) -> None:
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        payload = json.dumps(data, separators=(",", ":")).encode()
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload)
        Path(temporary).replace(path)
    except OSError:
        return  # a full or read-only disk costs time, not the kernel


def _revive(data: Mapping[str, Any]) -> Tables:
    rules = tuple(Rule(origin, size, name, tuple(shape), lift) for origin, size, name, shape, lift in data["rules"])
    symbols: list[str] = data["symbols"]
    states = tuple({symbols[at]: action for at, action in zip(*row, strict=True)} for row in data["states"])
    units = tuple(rule.origin if rule.is_unit else "" for rule in rules)
    return Tables(states, rules, data["starts"], data["ends"], data["words"], units)


def _generate(text: str, starts: tuple[str, ...]) -> dict[str, Any]:
    """The tables as plain data, in the form that _revive reads."""
    from lark import Lark  # costs 40 ms; only a grammar without kept tables pays
    from lark.grammar import Rule as LarkRule
    from lark.lexer import TerminalDef

    parser = Lark(text, parser="lalr", start=list(starts), maybe_placeholders=True)
    data, memo = parser.memo_serialize([TerminalDef, LarkRule])
    table = data["parser"]["parser"]
    numbers = {key: at for at, key in enumerate(key for key, row in memo.items() if row["__type__"] == "Rule")}
    order = {state: at for at, state in enumerate(table["states"])}
    states = [
        [list(row), [order[to] if action == 0 else -numbers[to["@"]] - 1 for action, to in row.values()]]
        for row in table["states"].values()
    ]
    words = {
        spelling: terminal.name for terminal in parser.terminals for spelling in _spellings(terminal.pattern.value)
    }
    return {
        "rules": [_rule(memo[key]) for key in numbers],
        "symbols": [table["tokens"][at] for at in range(len(table["tokens"]))],
        "states": states,
        "starts": {name: order[at] for name, at in table["start_states"].items()},
        "ends": {name: order[at] for name, at in table["end_states"].items()},
        "words": words,
    }


def _spellings(pattern: str) -> list[str]:
    """The spellings of a terminal, which must be one fixed text or a choice of several."""
    inner = pattern[3:-1] if pattern.startswith("(?:") and pattern.endswith(")") else pattern
    return [re.sub(r"\\(.)", r"\1", choice) for choice in re.split(r"(?<!\\)\|", inner)]


def _rule(row: Mapping[str, Any]) -> list[Any]:
    """[origin, size, callback, shape, lift] of a serialised lark rule."""
    empty: Iterable[bool] = row["options"]["empty_indices"]
    gaps = [len(ones) for ones in "".join("1" if flag else "0" for flag in empty).split("0")]
    shape: list[int] = []
    for at, symbol in enumerate(row["expansion"]):
        shape += [ABSENT] * (gaps[at] if empty else 0)
        if not symbol.get("filter_out"):
            shape.append(at + EXPAND if symbol["name"].startswith("_") else at)
    shape += [ABSENT] * (gaps[-1] if empty else 0)
    name = row["alias"] or row["origin"]["name"]
    lift = bool(row["options"]["expand1"]) and not row["alias"]
    return [row["origin"]["name"], len(row["expansion"]), name, shape, lift]
