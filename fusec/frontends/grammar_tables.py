"""LALR(1) tables of a grammar: made by lark, shipped as plain JSON beside it, and used without importing lark.

Making tables takes lark half a second, reading them 2 ms. ``python -m fusec.frontends.grammar_tables`` writes them
after a change of the grammar; until then they are made anew in every process, since they name the text they are of.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from fusec.base.records import dataclass
from fusec.base.source import SourceFile, Span

FORMAT = 2
STARTS = ("body", "preamble", "condition")  # of the kernel grammar
GRAMMARS = {"kernel": STARTS, "python": ("module", "expressions", "anonymous"), "graph": ("graph",)}
EXPAND = 1 << 20  # added to the position of a child that is a list to be spliced in
MAX_CHARACTERS = 1 << 20  # of a text
MAX_TOKENS = 200_000
ABSENT = -1  # stands for an optional part that is missing

Callback = Callable[[Any, list[Any]], Any]


class Token(NamedTuple):
    """A piece of a text: `type` is a terminal of the grammar, or what a scanner calls what is none yet."""

    type: str
    text: str
    start: int  # where it stands in the user's text; tokens of a macro's body have the place of its use
    end: int

    def span(self, file: SourceFile) -> Span:
        """The place in the text."""
        return Span(file, self.start, self.end)


class UnexpectedSymbolError(Exception):
    """A token that no rule allows here: the token (None for the end of the text) and the terminals that would do."""

    def __init__(self, token: Any, expected: frozenset[str]) -> None:
        super().__init__(token, expected)
        self.token = token
        self.expected = expected


@dataclass(frozen=True)
class Production:
    """One production."""

    origin: str  # what it makes
    size: int  # how many symbols it takes
    callback: str
    shape: tuple[int, ...]  # positions of the children, + EXPAND where a list is spliced in, ABSENT for what is missing
    lift: bool  # a single child stands for the whole

    @property
    def is_unit(self) -> bool:
        """True if a reduction changes the state and not the value."""
        return self.lift and self.size == 1 and self.shape == (0,)


@dataclass(frozen=True)
class Tables:
    """The automaton."""

    states: tuple[dict[str, int], ...]  # the action on each symbol: n >= 0 shifts to state n, -r-1 reduces by rule r
    rules: tuple[Production, ...]
    starts: Mapping[str, int]
    ends: Mapping[str, int]
    words: Mapping[str, str]  # spelling -> terminal, for the terminals that have fixed spellings
    units: tuple[str, ...]  # what each rule makes if it changes the state and not the value, else ""

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


def _bind(rule: Production, builder: type) -> Callback:
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
    """The tables of ``grammar/NAME.lark``: those of ``grammar/NAME.json`` if they are of this very text."""
    with _lock:
        from importlib import resources  # with the first text: 3 ms that `import fusec` need not spend

        folder = resources.files("fusec.grammar")
        text = (folder / f"{grammar}.lark").read_text(encoding="utf-8")
        kept = folder / f"{grammar}.json"
        return load_tables(text, starts, kept.read_text(encoding="utf-8") if kept.is_file() else "{}")


_lock = threading.Lock()


def load_tables(text: str, starts: tuple[str, ...], kept: str = "{}") -> Tables:
    """The tables of a grammar text: `kept`, what `write_tables` gave, or new ones if that is of another text."""
    data = json.loads(kept)
    if data.get("of") != _digest(text, starts):
        data = json.loads(write_tables(text, starts))
    return _revive(data)


def write_tables(text: str, starts: tuple[str, ...]) -> str:
    """The tables of a grammar text as JSON, the same in every process: a line for every rule and state."""
    data = {"of": _digest(text, starts), **_generate(text, starts)}
    parts = []
    for key, part in data.items():
        if key in ("rules", "states"):
            rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in part)
            parts.append(f"{json.dumps(key)}:[\n{rows}\n]")
        else:
            parts.append(f"{json.dumps(key)}:{json.dumps(part, separators=(',', ':'))}")
    return "{" + ",\n".join(parts) + "}\n"


def _digest(text: str, starts: tuple[str, ...]) -> str:
    """Names what tables depend on."""
    import hashlib  # likewise

    return hashlib.sha256(f"{FORMAT} {starts} {text}".encode()).hexdigest()


def _revive(data: Mapping[str, Any]) -> Tables:
    rules = tuple(
        Production(origin, size, name, tuple(shape), lift) for origin, size, name, shape, lift in data["rules"]
    )
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
    rules = {key: _rule(row) for key, row in memo.items() if row["__type__"] == "Rule"}
    order = sorted(rules, key=lambda key: json.dumps(rules[key]))  # lark's own order differs between processes
    numbers = {key: at for at, key in enumerate(order)}
    names = table["tokens"]
    symbols = sorted(set(names.values()))
    place = {name: at for at, name in enumerate(symbols)}
    actions = {
        state: {names[at]: (number, to if number == 0 else -numbers[to["@"]] - 1) for at, (number, to) in row.items()}
        for state, row in table["states"].items()
    }
    states = _renumber(actions, [table["start_states"][name] for name in starts])
    rows = [
        [[place[name] for name in sorted(actions[state])],
         [states[to] if number == 0 else to for _, (number, to) in sorted(actions[state].items())]]
        for state in states
    ]  # fmt: skip
    words = {
        spelling: terminal.name for terminal in parser.terminals for spelling in _spellings(terminal.pattern.value)
    }
    return {
        "starts": {name: states[table["start_states"][name]] for name in starts},
        "ends": {name: states[table["end_states"][name]] for name in starts},
        "words": dict(sorted(words.items())),
        "symbols": symbols,
        "rules": [rules[key] for key in order],
        "states": rows,
    }


def _renumber(actions: Mapping[int, Mapping[str, tuple[int, int]]], starts: list[int]) -> dict[int, int]:
    """State -> number, in the order in which states are reached by symbols in their order."""
    found = dict.fromkeys(starts)
    pending = list(starts)
    for state in pending:
        for _, (number, to) in sorted(actions[state].items()):
            if number == 0 and to not in found:
                found[to] = None
                pending.append(to)
    return {state: at for at, state in enumerate(found)}


def _spellings(pattern: str) -> list[str]:
    """The spellings of a terminal, which must be one fixed text or a choice of several."""
    if not pattern.startswith("(?:"):
        return [pattern]  # one text, as it is
    return [re.sub(r"\\(.)", r"\1", choice) for choice in re.split(r"(?<!\\)\|", pattern[3:-1])]


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


def main() -> None:
    """Write the tables of every grammar beside it."""
    from importlib import resources

    folder = Path(str(resources.files("fusec.grammar")))
    for name, starts in GRAMMARS.items():
        text = (folder / f"{name}.lark").read_text(encoding="utf-8")
        (folder / f"{name}.json").write_text(write_tables(text, starts), encoding="utf-8")


if __name__ == "__main__":
    main()
