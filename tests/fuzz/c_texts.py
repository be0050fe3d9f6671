"""Random kernel strings, valid by construction: declarations, preambles, bodies.

Everything a text does is defined: indices are in range, loops are bounded, elements write only what is theirs, and
atomic updates commute.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from fusec.base.dtypes import ALL, BY_NAME, INT32, INT64, UINT32, UINT64, DType
from tests.fuzz.c_expressions import Expressions, Name, Scope
from tests.fuzz.c_types import Kind, kind_of

COMMON = [BY_NAME[name] for name in ("float32", "float32", "float64", "int32", "int64", "uint8", "int16", "uint32")]
NESTING = 3  # of blocks
READ = ("in", "number")
DECLARATIONS = ("{t} {n} = {v};", "{t} {n}({v});", "const {t} {n} = {v};", "{t} {n} = {v};", "auto {n} = {v};")
ASSIGNMENTS: dict[Kind, tuple[str, ...]] = {
    "int": ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="),
    "float": ("=", "+=", "*=", "/="),
    "complex": ("=", "+=", "*="),
}
COUNTED = ("int {0} = 0; {0} < {1}; {0}++", "unsigned {0} = 0; {0} < {1}; ++{0}", "int {0} = 5; {0} > {1}; {0} -= 2")
ROLES = ("in", "out", "raw in", "raw out", "bins", "number")


@dataclass(frozen=True)
class Param:
    """A declared parameter. declared: the type as written; role: one of ROLES."""

    name: str
    dtype: DType
    declared: str
    role: str

    def __str__(self) -> str:
        return f"{'raw ' if self.role in ('raw in', 'raw out', 'bins') else ''}{self.declared} {self.name}"


@dataclass(frozen=True)
class KernelText:
    """The texts of an ElementwiseKernel, and what its parameters are. body: statements, each of which stands alone."""

    params: tuple[Param, ...]
    body: tuple[str, ...]
    preamble: tuple[str, ...] = ()
    options: dict[str, object] = field(default_factory=dict)

    @property
    def texts(self) -> dict[str, object]:
        """The arguments of the constructor."""
        sides = ["", ""]
        for param in self.params:
            is_out = param.role in ("out", "raw out", "bins")
            sides[is_out] += f", {param}" if sides[is_out] else str(param)
        return {
            "in_params": sides[0], "out_params": sides[1], "operation": "\n".join(self.body), "name": "fuzzed",
            "preamble": "\n".join(self.preamble), **self.options,
        }  # fmt: skip

    def without(self, number: int) -> KernelText:
        """The same, but for one statement."""
        return replace(self, body=self.body[:number] + self.body[number + 1 :])


class Writer(Expressions):
    """Writes one kernel."""

    def kernel(self) -> KernelText:
        """Draw everything."""
        params = self.params()
        functions, preamble = self.preamble()
        read = [
            Name(each.name, kind_of(each.dtype.kind), each.dtype.name, False) for each in params if each.role in READ
        ]
        names = [Name("i", "int", "long long", False), Name("n", "int", "long long", False), *read]
        raw = [Name(each.name, kind_of(each.dtype.kind), each.dtype.name) for each in params if each.role == "raw in"]
        scope = Scope(names, raw=raw, functions=functions)
        after = scope.inner()
        self.outputs = [param for param in params if param.role in ("out", "raw out", "bins")]
        body = [text for _ in range(self.random.randint(0, 6)) for text in self.statement(scope, 0)]
        last = [param for param in self.outputs if param.role == "out"]
        body += [f"{param.name} = {self.value(kind_of(param.dtype.kind), scope, 4)};" for param in last]
        options: dict[str, object] = {}
        if self.chance(0.05):
            options["after_loop"] = " ".join(self.statement(after, NESTING))
        if self.chance(0.1):
            options["reduce_dims"] = False
        if self.chance(0.1):
            options["fp"] = "contract"
        if self.chance(0.1):
            options["bounds"] = "check"
        return KernelText(tuple(params), tuple(body), tuple(preamble), options)

    # --- declarations --------------------------------------------------------------------------------------------

    def dtype(self) -> DType:
        found = self.random.choice(COMMON if self.chance(0.6) else ALL)
        return found if self.complex_too or not found.is_complex else self.random.choice(COMMON)

    def params(self) -> list[Param]:
        letters = {letter: self.dtype() for letter in "TU"}
        made: list[Param] = []

        def add(name: str, role: str, dtype: DType | None = None) -> None:
            if dtype is None and role != "number" and self.chance(0.4):
                letter = self.random.choice("TU")
                made.append(Param(name, letters[letter], letter, role))
            else:
                dtype = dtype or self.dtype()
                made.append(Param(name, dtype, dtype.name, role))

        for at in range(self.random.randint(1, 3)):
            add(f"x{at}", "in")
        for at in range(self.random.choice((0, 0, 0, 1, 1, 2))):
            add(f"r{at}", "raw in")
        if self.chance(0.25):
            add("a", "number")
        for at in range(self.random.choice((1, 1, 1, 2))):
            add(f"z{at}", "out")
        if self.chance(0.1):
            add("w", "raw out")
        if self.chance(0.1):
            add("bins", "bins", self.random.choice((INT32, INT64, UINT32, UINT64)))
        bound = {param.declared for param in made if param.role == "in"}
        free = {"T", "U"} - bound
        return [replace(each, declared=each.dtype.name) if each.declared in free else each for each in made]

    def preamble(self) -> tuple[list[tuple[str, Kind]], list[str]]:
        """Functions that can be called, and the texts that define them."""
        calls: list[tuple[str, Kind]] = []
        texts: list[str] = []
        for _ in range(self.random.choice((0, 0, 0, 1, 1, 2, 3))):
            form = self.random.choice(("function", "function", "template", "macro", "constant", "struct"))
            text, call = getattr(self, f"_{form}")(calls)
            texts.append(text)
            calls.append(call)
        return calls, texts

    def _function(self, calls: list[tuple[str, Kind]]) -> tuple[str, tuple[str, Kind]]:
        name, kind = self.name("f"), self.kind()
        kinds = [self.kind() for _ in range(self.random.randint(1, 2))]
        params = [Name(self.name("p"), each, self.type_of(each)) for each in kinds]
        scope = Scope(list(params), functions=list(calls), in_function=True)
        body = [text for _ in range(self.random.randint(0, 2)) for text in self.statement(scope, NESTING - 1)]
        if self.chance(0.3):
            body.append(f"if ({self.condition(scope, 2)}) return {self.value(kind, scope, 2)};")
        body.append(f"return {self.value(kind, scope, 3)};")
        declared = ", ".join(f"{param.type} {param.text}" for param in params)
        holes = ", ".join({"int": "{i}", "float": "{f}", "complex": "{c}"}[each] for each in kinds)
        words = self.random.choice(("__device__", "static inline", "__device__ __forceinline__"))
        return f"{words} {self.type_of(kind)} {name}({declared}) {{ {' '.join(body)} }}", (f"{name}({holes})", kind)

    def _template(self, calls: list[tuple[str, Kind]]) -> tuple[str, tuple[str, Kind]]:
        name = self.name("g")
        kind: Kind = self.random.choice(("int", "float"))
        hole = "{i}" if kind == "int" else "{f}"
        a, b = Name("a", kind, "T"), Name("b", kind, "T")
        value = self.value(kind, Scope([a, b], functions=list(calls), in_function=True), 3)
        text = f"template <typename T> __device__ T {name}(T a, T b) {{ T c = a; c += b; return a < c ? {value} : b; }}"
        if self.chance(0.5):
            return text, (f"{name}<{self.type_of(kind)}>({hole}, {hole})", kind)
        cast = self.type_of(kind)
        return text, (f"{name}(({cast})({hole}), ({cast})({hole}))", kind)

    def _macro(self, calls: list[tuple[str, Kind]]) -> tuple[str, tuple[str, Kind]]:
        name = self.name("M")
        kind: Kind = self.random.choice(("int", "float"))
        value = self.value(kind, Scope([Name("(v)", kind, "int", False)], functions=list(calls)), 2)
        hole = "{i}" if kind == "int" else "{f}"
        return f"#define {name}(v) ({value})", (f"{name}({hole})", kind)

    def _constant(self, calls: list[tuple[str, Kind]]) -> tuple[str, tuple[str, Kind]]:
        name = self.name("C")
        kind: Kind = self.random.choice(("int", "float"))
        return f"const {self.type_of(kind)} {name} = {self.literal(kind)};", (name, kind)

    def _struct(self, calls: list[tuple[str, Kind]]) -> tuple[str, tuple[str, Kind]]:
        """A struct, and a function that makes one and takes it apart."""
        name, function = self.name("S"), self.name("h")
        text = f"struct {name} {{ float u; int v; {self.type_of('float')} w; }};\n"
        scope = Scope([Name("s.u", "float", "float"), Name("s.v", "int", "int"), Name("s.w", "float", "double")])
        scope.functions, scope.in_function = list(calls), True
        body = " ".join(self.statement(scope, NESTING))
        text += f"__device__ float {function}(float a, int b) {{ {name} s; s.u = a; s.v = b; s.w = a; {body} "
        return text + f"return {self.value('float', scope, 2)}; }}", (f"{function}({{f}}, {{i}})", "float")

    # --- statements ----------------------------------------------------------------------------------------------

    def statement(self, scope: Scope, depth: int) -> list[str]:
        """One statement, or the two that make a loop."""
        forms = ["declare", "declare", "assign", "assign", "array", "reference"]
        if depth < NESTING and self.budget > 0:
            forms += ["branch", "branch", "count", "loop", "switch"]
        if scope.in_loop:
            forms.append("leave")
        if not scope.in_function:
            forms += ["effect"]
        return getattr(self, f"_{self.random.choice(forms)}")(scope, depth)

    def block(self, scope: Scope, depth: int) -> str:
        texts = [text for _ in range(self.random.randint(1, 3)) for text in self.statement(scope, depth + 1)]
        return "{ " + " ".join(texts) + " }"

    def _declare(self, scope: Scope, depth: int) -> list[str]:
        kind, name = self.kind(), self.name("v")
        known = self.type_of(kind)
        form = self.random.choice(DECLARATIONS)
        text = form.format(t=known, n=name, v=self.value(kind, scope, 3))
        scope.names.append(Name(name, kind, "auto" if "auto" in form else known, not form.startswith("const")))
        return [text]

    def _assign(self, scope: Scope, depth: int) -> list[str]:
        known = [name for name in scope.names if name.may]
        if not known:
            return self._declare(scope, depth)
        target = self.random.choice(known)
        if target.kind == "int" and target.type not in ("bool", "auto") and self.chance(0.15):
            return [self.random.choice(("++{};", "{}--;", "{}++;")).format(target.text)]
        op = self.random.choice(ASSIGNMENTS[target.kind])
        return [f"{target.text} {op} {self.value(target.kind, scope, 3)};"]

    def _array(self, scope: Scope, depth: int) -> list[str]:
        if scope.arrays and self.chance(0.6):
            array = self.random.choice(scope.arrays)
            return [f"{array.text}[({self.value('int', scope, 1)}) & 3] = {self.value(array.kind, scope, 2)};"]
        kind, name = self.kind(), self.name("t")
        known = self.type_of(kind)
        count = self.random.randint(0, 4) if kind != "complex" else 0
        values = ", ".join(f"({known})({self.value(kind, scope, 1)})" for _ in range(count))
        scope.arrays.append(Name(name, kind, known))
        return [f"{known} {name}[4] = {{{values}}};"]

    def _reference(self, scope: Scope, depth: int) -> list[str]:
        known = [name for name in scope.names if name.may and name.text[0] == "v" and name.type != "auto"]
        if not known or depth == 0:
            return self._assign(scope, depth)
        target = self.random.choice(known)
        name = self.name("q")
        if self.chance(0.5):
            return [f"{{ {target.type}& {name} = {target.text}; {name} = {self.value(target.kind, scope, 2)}; }}"]
        return [f"{{ {target.type}* {name} = &{target.text}; *{name} = {self.value(target.kind, scope, 2)}; }}"]

    def _branch(self, scope: Scope, depth: int) -> list[str]:
        text = f"if ({self.condition(scope, 2)}) {self.block(scope.inner(), depth)}"
        if self.chance(0.3):
            text += f" else if ({self.condition(scope, 2)}) {self.block(scope.inner(), depth)}"
        return [text + (f" else {self.block(scope.inner(), depth)}" if self.chance(0.5) else "")]

    def _count(self, scope: Scope, depth: int) -> list[str]:
        name, inner = self.name("k"), scope.inner(in_loop=True)
        inner.names.append(Name(name, "int", "int", False))
        stop = self.random.choice(("3", "4", "1", "0", f"(int)(({self.value('int', scope, 1)}) & 3)"))
        head = self.random.choice(COUNTED)
        return [f"for ({head.format(name, stop)}) {self.block(inner, depth)}"]

    def _loop(self, scope: Scope, depth: int) -> list[str]:
        name, inner = self.name("k"), scope.inner(in_loop=True)
        scope.names.append(Name(name, "int", "int", False))
        inner.names.append(Name(name, "int", "int", False))
        test, body = f"{name}++ < {self.random.randint(0, 4)} && {self.condition(scope, 2)}", self.block(inner, depth)
        return [f"int {name} = 0;", self.random.choice((f"while ({test}) {body}", f"do {body} while ({test});"))]

    def _switch(self, scope: Scope, depth: int) -> list[str]:
        cases = self.random.sample(range(5), self.random.randint(1, 3))
        text = "".join(f"case {case}: {self.block(scope.inner(False), depth)} break; " for case in cases)
        if self.chance(0.5):
            text += f"default: {self.block(scope.inner(False), depth)} "
        return [f"switch (({self.value('int', scope, 2)}) & 7) {{ {text}}}"]

    def _leave(self, scope: Scope, depth: int) -> list[str]:
        return [f"if ({self.condition(scope, 2)}) {self.random.choice(('break', 'continue'))};"]

    def _effect(self, scope: Scope, depth: int) -> list[str]:
        """A store to a place of this element alone, or an atomic update that commutes."""
        if not self.outputs:
            return self._declare(scope, depth)
        param = self.random.choice(self.outputs)
        kind = kind_of(param.dtype.kind)
        if param.role == "raw out":
            return [f"{param.name}[i] = {self.value(kind, scope, 2)};"]
        if param.role == "bins":
            return [f"atomicAdd(&bins[({self.value('int', scope, 1)}) & 3], {self.value('int', scope, 2)});"]
        return [f"{param.name} = {self.value(kind, scope, 2)};"]


def kernel_text(random: Random) -> KernelText:
    """A kernel of some size: most are small, a few large."""
    budget = random.choice((10, 10, 20, 20, 30, 40, 60, 150))
    return Writer(random, budget, random.choice((0.0, 0.0, 0.05)), random.random() < 0.15).kernel()
