"""Random expressions of the kernel language, of a kind that is known: whole numbers, floats, complex numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.fuzz.c_types import (
    CHEAP,
    COMPLEX,
    COMPLEX_DEAR,
    COMPLEX_FUNCTIONS,
    DEAR,
    FLOAT_LITERALS,
    FLOATS,
    INT_FUNCTIONS,
    INT_LITERALS,
    INTS,
    PARTS,
    TYPES,
    Kind,
)


@dataclass(frozen=True)
class Name:
    """Something that can be read. type: as written in C; may: whether it can be assigned."""

    text: str
    kind: Kind
    type: str
    may: bool = True


@dataclass
class Scope:
    """What statements at one place may use. arrays: local ones of four elements; functions: text with holes, kind."""

    names: list[Name]
    arrays: list[Name] = field(default_factory=list)
    raw: list[Name] = field(default_factory=list)
    functions: list[tuple[str, Kind]] = field(default_factory=list)
    in_loop: bool = False
    in_function: bool = False

    def inner(self, in_loop: bool | None = None) -> Scope:
        """A copy for a block."""
        loop = self.in_loop if in_loop is None else in_loop
        return Scope(list(self.names), list(self.arrays), self.raw, self.functions, loop, self.in_function)

    def of(self, kind: Kind) -> list[Name]:
        """The names of a kind."""
        return [name for name in self.names if name.kind == kind]


class Expressions:
    """Writes expressions. dear: how often a function is an elementary one; budget bounds the number of nodes."""

    def __init__(self, random: Random, budget: int, dear: float, complex_too: bool) -> None:
        self.random, self.budget, self.dear, self.complex_too = random, budget, dear, complex_too
        self.fresh = 0

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def name(self, prefix: str) -> str:
        self.fresh += 1
        return f"{prefix}{self.fresh}"

    def kind(self) -> Kind:
        kinds: tuple[Kind, ...] = ("int", "int", "float", "float", "complex" if self.complex_too else "float")
        return self.random.choice(kinds)

    def type_of(self, kind: Kind) -> str:
        return self.random.choice(TYPES[kind])

    def value(self, kind: Kind, scope: Scope, depth: int) -> str:
        """An expression of a kind."""
        self.budget -= 1
        if depth <= 0 or self.budget <= 0 or self.chance(0.15):
            return self.leaf(kind, scope)
        form = self.random.randrange(10)
        if form == 0:
            arms = f"{self.value(kind, scope, depth - 1)} : {self.value(kind, scope, 1)}"
            return f"({self.condition(scope, depth - 1)} ? {arms})"
        if form == 1:
            return self.element(kind, scope, depth)
        if form == 2:
            calls = [text for text, result in scope.functions if result == kind]
            if calls:
                return self.filled(self.random.choice(calls), kind, scope, depth)
        if kind == "int":
            return self.whole(scope, depth)
        return self.real(scope, depth) if kind == "float" else self.complex(scope, depth)

    def leaf(self, kind: Kind, scope: Scope) -> str:
        """A name of the kind, a literal, or a name of another kind converted."""
        known = scope.of(kind)
        if known and self.chance(0.75):
            return self.random.choice(known).text
        others = [name for name in scope.names if name.kind != "complex"]
        if others and kind != "complex" and self.chance(0.4):
            return f"({self.type_of(kind)}){self.random.choice(others).text}"
        if kind == "complex":
            return f"{self.random.choice(COMPLEX)}({self.literal('float')}, {self.leaf('float', scope)})"
        return self.literal(kind)

    def literal(self, kind: Kind) -> str:
        found = self.random.choice(INT_LITERALS if kind == "int" else FLOAT_LITERALS)
        return f"({found})" if found[0] == "-" else found

    def element(self, kind: Kind, scope: Scope, depth: int) -> str:
        """An element of a local or raw array, whose index is in range."""
        local = [array for array in scope.arrays if array.kind == kind]
        raw = [array for array in scope.raw if array.kind == kind]
        if raw and self.chance(0.6):
            array = self.random.choice(raw).text
            index = self.random.choice(("i % {0}.size()", "({1}) & 3", "({0}.size() - 1) & ({1}) & 3"))
            return f"{array}[{index.format(array, self.value('int', scope, depth - 2))}]"
        if local:
            return f"{self.random.choice(local).text}[({self.value('int', scope, depth - 2)}) & 3]"
        return self.leaf(kind, scope)

    def filled(self, text: str, kind: Kind, scope: Scope, depth: int) -> str:
        """A text whose holes {i}, {f}, {c}, {t} and {T} are filled with values and types."""
        kinds: dict[str, Kind] = {"i": "int", "f": "float", "c": "complex"}
        made = ""
        for piece in text.replace("}", "{").split("{"):
            if piece in kinds:
                made += self.value(kinds[piece], scope, depth - 1)
            elif piece == "T":
                made += self.random.choice(TYPES[kind])
            elif piece == "t":
                made += self.random.choice((*INTS, *FLOATS))
            else:
                made += piece
        return made

    def condition(self, scope: Scope, depth: int) -> str:
        """A truth."""
        form = self.random.randrange(6)
        if form <= 2 or depth <= 0:
            kind: Kind = self.random.choice(("int", "float"))
            op = self.random.choice(("<", "<=", ">", ">=", "==", "!="))
            return f"({self.value(kind, scope, depth - 1)} {op} {self.value(kind, scope, depth - 1)})"
        if form == 3:
            return f"!{self.condition(scope, depth - 1)}"
        if form == 4:
            op = self.random.choice(("&&", "||", "^", "&", "and", "or"))
            return f"({self.condition(scope, depth - 1)} {op} {self.condition(scope, depth - 1)})"
        if self.complex_too and self.chance(0.3):
            a, b = (self.value("complex", scope, depth - 1) for _ in "ab")
            return f"({a} {self.random.choice(('==', '!='))} {b})"
        return f"(bool)({self.value('int', scope, depth - 1)})"

    def whole(self, scope: Scope, depth: int) -> str:
        """A whole number."""
        form = self.random.randrange(10)
        if form <= 5:
            op = self.random.choice(("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "+", "-", "*"))
            return f"({self.value('int', scope, depth - 1)} {op} {self.value('int', scope, depth - 1)})"
        if form == 6:
            return f"{self.random.choice('-~!+')}({self.value('int', scope, depth - 1)})"
        if form == 7:
            cast = self.random.choice(("({t})({v})", "static_cast<{t}>({v})", "({t})({v})"))
            source: Kind = self.random.choice(("int", "float"))
            return cast.format(t=self.random.choice(INTS), v=self.value(source, scope, depth - 1))
        if form == 8:
            return self.condition(scope, depth - 1)
        return self.filled(self.random.choice(INT_FUNCTIONS), "int", scope, depth)

    def real(self, scope: Scope, depth: int) -> str:
        """A float."""
        form = self.random.randrange(10)
        if form <= 5:
            pair = [self.value("float", scope, depth - 1) for _ in "ab"]
            if self.chance(0.15):
                pair[self.random.randrange(2)] = self.value("int", scope, depth - 1)
            return f"({pair[0]} {self.random.choice(('+', '-', '*', '/', '-', '*'))} {pair[1]})"
        if form == 6:
            return f"-({self.value('float', scope, depth - 1)})"
        if form == 7:
            source: Kind = self.random.choice(("int", "float"))
            return f"({self.random.choice(FLOATS)})({self.value(source, scope, depth - 1)})"
        if self.complex_too and form == 8 and scope.of("complex"):
            return self.filled(self.random.choice(PARTS), "float", scope, depth)
        table = DEAR if self.chance(self.dear) else CHEAP
        return self.filled(self.random.choice(table), "float", scope, depth)

    def complex(self, scope: Scope, depth: int) -> str:
        """A complex number."""
        form = self.random.randrange(8)
        if form <= 4:
            op = self.random.choice(("+", "-", "*", "/", "*", "+"))
            return f"({self.value('complex', scope, depth - 1)} {op} {self.value('complex', scope, depth - 1)})"
        if form == 5:
            return f"-({self.value('complex', scope, depth - 1)})"
        table = COMPLEX_DEAR if self.chance(self.dear) else COMPLEX_FUNCTIONS
        return self.filled(self.random.choice(table), "complex", scope, depth)
