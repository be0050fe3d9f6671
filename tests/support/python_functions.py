"""Random functions in the Python subset, with the dtype of every expression known, so that Python can run them too.

Variables keep their dtypes at branches, and conversions of floats to integers are left out: NumPy leaves those open.
"""

import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

DTYPES = ("bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float32", "float64")
INTEGERS = tuple(name for name in DTYPES if "int" in name)
FLOATS = ("float32", "float64")
VALUES = {
    "bool": [False, True],
    "float": [0.0, -0.0, 1.0, -1.5, 3.25, 1e-30, -7e20, np.inf, -np.inf, np.nan, 0.1, 1 / 3],
}


class Writer:
    """Writes one function of at most so many statements at its top; every expression comes with its dtype."""

    def __init__(self, seed: int, statements: int = 5) -> None:
        self.random, self.statements = random.Random(seed), statements
        count = self.random.randint(1, 3)
        self.params = {name: self.random.choice(DTYPES) for name in "xyz"[:count]}
        self.variables = dict(self.params)
        self.lines: list[str] = []
        self.fresh = 0
        self.tables: dict[str, object] = {}
        self.results = [self.random.choice(DTYPES) for _ in range(self.random.choice((1, 1, 1, 2)))]

    def source(self) -> str:
        for _ in range(self.random.randint(1, self.statements)):
            self.statement(1, 2)
        self.line(1, self.returned(3))
        return "\n".join([f"def f({', '.join(self.params)}):", *self.lines, ""])

    def returned(self, depth: int) -> str:
        return f"return {', '.join(self.of(dtype, depth) for dtype in self.results)}"

    # --- statements ---

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def statement(self, depth: int, budget: int) -> None:
        kinds = ["assign", "assign", "augment", "swap"] + ["branch", "count", "walk", "loop", "leave", "give"] * (
            budget > 0
        )
        getattr(self, self.random.choice(kinds))(depth, budget)

    def assign(self, depth: int, budget: int) -> None:
        if depth == 1 and self.random.random() < 0.6:
            text, dtype = self.expression(3)
            name = f"v{self.fresh}"
            self.fresh += 1
            self.line(depth, f"{name} = {text}")
            self.variables[name] = dtype
            return
        name = self.random.choice(list(self.variables))
        self.line(depth, f"{name} = {self.of(self.variables[name], 2)}")

    def augment(self, depth: int, budget: int) -> None:
        name = self.random.choice(list(self.variables))
        dtype = self.variables[name]
        op = self.random.choice({"bool": ["&=", "|="]}.get(dtype, ["+=", "-=", "*="]))
        self.line(depth, f"{name} {op} {self.of(dtype, 2)}")

    def swap(self, depth: int, budget: int) -> None:
        name = self.random.choice(list(self.variables))
        alike = [each for each, dtype in self.variables.items() if dtype == self.variables[name]]
        other = self.random.choice(alike)
        self.line(depth, f"{name}, {other} = {other}, {name}")

    def block(self, depth: int, budget: int) -> None:
        known = dict(self.variables)
        for _ in range(self.random.randint(1, 3)):
            self.statement(depth + 1, budget - 1)
        self.variables = known

    def branch(self, depth: int, budget: int) -> None:
        self.line(depth, f"if {self.of('bool', 2)}:")
        self.block(depth, budget)
        if self.random.random() < 0.5:
            self.line(depth, f"elif {self.of('bool', 2)}:")
            self.block(depth, budget)
        if self.random.random() < 0.6:
            self.line(depth, "else:")
            self.block(depth, budget)

    def count(self, depth: int, budget: int) -> None:
        name = f"i{self.fresh}"
        self.fresh += 1
        bounds = self.random.choice(("3", "1, 4", "5, 0, -2", "0"))
        self.line(depth, f"for {name} in range({bounds}):")
        known = [each for each, dtype in self.variables.items() if dtype != "bool"]
        if known:
            target = self.random.choice(known)
            self.line(depth + 1, f"{target} = {target} + {name}")
        if self.random.random() < 0.5:
            word = self.random.choice(("break", "continue"))
            self.line(depth + 1, f"if {self.of('bool', 1)}:")
            self.block(depth + 1, 0)
            self.line(depth + 2, word)
        self.block(depth, budget)

    def walk(self, depth: int, budget: int) -> None:
        """A loop over tuples and arrays, perhaps several or counted."""
        name, known = f"w{self.fresh}", [each for each, dtype in self.variables.items() if dtype != "bool"]
        self.fresh += 1
        dtype, count = self.random.choice(DTYPES), self.random.randint(0, 4)
        if self.random.random() < 0.2:
            count = 70  # beyond what is written out
        self.tables[f"T{len(self.tables)}"] = np.resize(values(dtype, 24, self.random.randint(0, 99)), count)
        table = f"T{len(self.tables) - 1}"
        items = ", ".join(str(self.random.randint(0, 5)) for _ in range(self.random.randint(1, 4)))
        head = self.random.choice(
            (
                f"{name}, k{name} in enumerate({table})",
                f"k{name}, {name} in zip({table}, ({items},))",
                f"{name}, k{name} in zip(({items},), reversed({table}))",
            )
        )
        self.line(depth, f"for {head}:")
        if known:
            target = self.random.choice(known)
            self.line(depth + 1, f"{target} = {target} + {name}")
        outer = dict(self.variables)
        self.variables[f"k{name}"] = dtype
        if self.random.random() < 0.5:
            self.line(depth + 1, f"if {self.of('bool', 1)}:")
            self.block(depth + 1, 0)
            self.line(depth + 2, self.random.choice(("break", "continue")))
        self.block(depth, min(budget, 1) if count < 9 else 0)
        self.variables = outer

    def loop(self, depth: int, budget: int) -> None:
        name = f"n{self.fresh}"
        self.fresh += 1
        self.line(depth, f"{name} = 0")
        self.line(depth, f"while {name} < 4 and {self.of('bool', 1)}:")
        self.line(depth + 1, f"{name} += 1")
        self.block(depth, budget)

    def leave(self, depth: int, budget: int) -> None:
        """A local that only ways out by break give a value."""
        name = f"w{self.fresh}"
        self.fresh += 1
        dtype = self.random.choice(list(self.variables.values()))
        self.line(depth, f"k{name} = 0")
        self.line(depth, "while True:")
        self.line(depth + 1, f"{name} = {self.of(dtype, 1)}")
        self.line(depth + 1, f"k{name} += 1")
        self.line(depth + 1, f"if k{name} > 2 or {self.of('bool', 1)}:")
        self.line(depth + 2, "break")
        if depth == 1:
            self.variables[name] = dtype

    def give(self, depth: int, budget: int) -> None:
        """A return before the end."""
        self.line(depth, f"if {self.of('bool', 2)}:")
        if self.random.random() < 0.5:
            self.block(depth, budget)
        self.line(depth + 1, self.returned(1))
        if self.random.random() < 0.3:
            self.line(depth, "else:")
            self.block(depth, budget)

    # --- expressions ---

    def of(self, dtype: str, depth: int) -> str:
        """An expression of a certain dtype."""
        for _ in range(30):
            text, found = self.expression(depth)
            if found == dtype:
                return text
        if dtype == "bool":
            name = self.random.choice(list(self.variables))
            return f"({name} != 0)"
        name = self.random.choice([each for each, kind in self.variables.items() if kind not in FLOATS] or [""])
        if dtype in FLOATS:
            return f"np.{dtype}({self.expression(1)[0]})"
        return f"{name}.astype(np.{dtype})" if name else f"np.{dtype}({self.random.randint(0, 9)})"

    def expression(self, depth: int) -> tuple[str, str]:
        if depth == 0 or self.random.random() < 0.15:
            name = self.random.choice(list(self.variables))
            return name, self.variables[name]
        makers = (self.arithmetic, self.arithmetic, self.literal, self.compare, self.function, self.choose, self.logic)
        makers = (*makers, self.table)
        return self.random.choice(makers)(depth - 1)

    def arithmetic(self, depth: int) -> tuple[str, str]:
        (a, left), (b, right) = self.expression(depth), self.expression(depth)
        common = np.result_type(np.dtype(left), np.dtype(right)).name
        if common == "bool":
            op = self.random.choice("&|^+*")
            return f"({a} {op} {b})", "bool"
        ops = ["+", "-", "*", "/", "//", "%"] + ["&", "|", "^", "<<", ">>"] * (common in INTEGERS)
        op = self.random.choice(ops)
        if common not in FLOATS and op == "/":
            return f"({a} / {b})", "float64"
        return f"({a} {op} {b})", common

    def literal(self, depth: int) -> tuple[str, str]:
        a, dtype = self.expression(depth)
        if dtype in FLOATS:
            number, op = self.random.choice(("0.5", "3", "1e-3", "2.75")), self.random.choice("+-*/")
        else:
            number, op = self.random.choice(("1", "2", "5")), self.random.choice(["+", "-", "*", "//", "%"])
            dtype = "int64" if dtype == "bool" else dtype
        return (f"({number} {op} {a})" if self.random.random() < 0.5 else f"({a} {op} {number})"), dtype

    def compare(self, depth: int) -> tuple[str, str]:
        a, b, c = (self.expression(depth)[0] for _ in range(3))
        first, second = (self.random.choice(("<", "<=", ">", ">=", "==", "!=")) for _ in range(2))
        if self.random.random() < 0.3:
            return f"np.bool_({a} {first} {b} {second} {c})", "bool"
        return f"({a} {first} {b})", "bool"

    def function(self, depth: int) -> tuple[str, str]:
        a, dtype = self.expression(depth)
        if dtype in FLOATS:
            name = self.random.choice(("np.sqrt", "np.floor", "np.trunc", "np.rint", "abs", "np.isnan", "np.absolute"))
            return f"{name}({a})", "bool" if name == "np.isnan" else dtype
        if dtype == "bool":
            return f"(~{a})", dtype
        return self.random.choice((f"abs({a})", f"(-{a})", f"(~{a})", f"np.maximum({a}, {a})")), dtype

    def table(self, depth: int) -> tuple[str, str]:
        """An item of an array or a tuple from outside, or of a tuple of values."""
        index, kind = self.expression(depth)
        if kind not in INTEGERS:
            return self.expression(depth)
        count, dtype = self.random.randint(1, 6), self.random.choice(DTYPES)
        shown = f"{index} % {count}" if kind[0] == "u" or self.random.random() < 0.5 else f"{index} % {count} - {count}"
        name = f"T{len(self.tables)}"
        if self.random.random() < 0.3:
            items = ", ".join(self.of(dtype, 0) for _ in range(count))
            return f"({items},)[{shown}]", dtype
        if self.random.random() < 0.3:
            self.tables[name] = tuple(self.random.randint(0, 5) for _ in range(count))
            return f"np.{dtype}({name}[{shown}])", dtype
        self.tables[name] = values(dtype, 24, self.random.randint(0, 99))[:count]
        return f"{name}[{shown}]", dtype

    def choose(self, depth: int) -> tuple[str, str]:
        test = self.expression(depth)[0]
        a, dtype = self.expression(depth)
        return f"({a} if {test} else {self.of(dtype, 1)})", dtype

    def logic(self, depth: int) -> tuple[str, str]:
        a, b = self.expression(depth)[0], self.expression(depth)[0]
        op = self.random.choice(("and", "or"))
        return f"np.bool_(({a} != 0) {op} not {b})", "bool"


def values(dtype: str, count: int, seed: int) -> np.ndarray:
    """Hard and random values of a dtype."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, count).astype(bool)
    if dtype in FLOATS:
        hard = np.array(VALUES["float"], dtype)
        return np.concatenate([hard, rng.normal(size=max(count - len(hard), 0)).astype(dtype)])[:count][
            rng.permutation(count)
        ]
    info = np.iinfo(dtype)
    hard = np.array([info.min, info.max, 0, 1, info.max // 2], dtype)
    some = rng.integers(max(info.min, -9), 10, count - len(hard)).astype(dtype)
    return np.concatenate([hard, some])[rng.permutation(count)]


@contextmanager
def quietly() -> Iterator[None]:
    """No warnings of arithmetic."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def in_python(text: str, arrays: list, dtypes: list, tables: dict) -> list:
    """The results of the text's function `f`, which Python runs for one element after the other; tables: its names."""
    names: dict = {"np": np, **tables}
    exec(text, names)
    rows = []
    with quietly():
        for row in zip(*arrays, strict=True):
            found = names["f"](*row)
            rows.append(found if isinstance(found, tuple) else (found,))
    return [np.array(column, dtype) for column, dtype in zip(zip(*rows, strict=True), dtypes, strict=True)]


def kernel_text(params: list[str], outputs: list[str]) -> str:
    """A loop over the grid that takes the elements backwards, and writes what `f` returns in one or several arrays."""
    args = ", ".join(f"{param}[j]" for param in params)
    targets = ", ".join(f"{out}[j]" for out in outputs)
    return f"""
def walk({", ".join((*params, *outputs))}):
    n = len({params[0]})
    for i in fusec.grid(n):
        j = n - 1 - i
        if j % 5 == 3:
            continue
        {targets} = f({args})
"""
