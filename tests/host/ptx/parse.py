"""PTX text to a Module: a tokeniser and a recursive descent over declarations and statements."""

import re
import struct

from ptx.faults import Unsupported
from ptx.syntax import (
    WIDTHS,
    Address,
    Function,
    Instruction,
    Literal,
    Module,
    Operand,
    Register,
    Symbol,
    Variable,
    Vector,
)

_TOKEN = re.compile(r'"[^"]*"|[-+]?[\w$%.]+(?:::[\w.]+)*|\S')
_NUMBER = re.compile(r"[-+]?\d")
_LINKAGE = (".visible", ".extern", ".weak", ".common")
_SPACES = (".global", ".const", ".shared", ".local", ".param")
_END = "\0"


def parse(text: str) -> Module:
    """Parse a module. Raises Unsupported with the line for what is not PTX, or not known here."""
    return _Parser(text).module()


def _without_comments(text: str) -> str:
    """Comments become blanks, so that lines keep their numbers."""
    blocks = re.sub(r"/\*.*?\*/", lambda found: "\n" * found[0].count("\n"), text, flags=re.S)
    return re.sub(r"//[^\n]*", "", blocks)


class _Parser:
    """The tokens, the position among them, and the scopes that names are looked up in."""

    def __init__(self, text: str) -> None:
        self.source = text.rstrip("\0").split("\n")
        self.tokens: list[str] = []
        self.lines: list[int] = []
        for number, line in enumerate(_without_comments("\n".join(self.source)).split("\n"), 1):
            found = _TOKEN.findall(line)
            self.tokens += found
            self.lines += [number] * len(found)
        self.tokens.append(_END)
        self.lines.append(len(self.source))
        self.at = 0
        self.scopes: list[dict[str, Register | Symbol]] = [{}]
        self.fresh = 0

    # --- tokens ----------------------------------------------------------------------------------------------------

    @property
    def token(self) -> str:
        """The next token."""
        return self.tokens[self.at]

    def take(self) -> str:
        """The next token, which is passed."""
        self.at += 1
        return self.tokens[self.at - 1]

    def accept(self, *wanted: str) -> bool:
        """Pass the next token if it is one of those."""
        found = self.tokens[self.at] in wanted
        self.at += found
        return found

    def expect(self, wanted: str) -> None:
        """Pass a token that must stand here."""
        if self.take() != wanted:
            raise self.error(f"expected {wanted!r}, found {self.tokens[self.at - 1]!r}", self.at - 1)

    def error(self, message: str, at: int | None = None) -> Unsupported:
        """A fault at a token, the next one by default."""
        line = self.lines[self.at if at is None else at]
        fault = Unsupported(message)
        fault.place = f"line {line}: {self.source[line - 1].strip()}"
        return fault

    # --- module scope ----------------------------------------------------------------------------------------------

    def module(self) -> Module:
        """All declarations."""
        functions: dict[str, Function] = {}
        variables: dict[str, Variable] = {}
        while self.token != _END:
            linkage = set()
            while self.token in _LINKAGE:
                linkage.add(self.take())
            if self.accept(".version", ".address_size", ".target"):
                self.take()
                while self.accept(","):
                    self.take()
            elif self.token in (".file", ".section", ".pragma"):
                self.skip_line()
            elif self.token in (".entry", ".func"):
                function = self.function()
                if function.body or function.name not in functions:
                    functions[function.name] = function
            elif self.token in _SPACES:
                for variable in self.variables(".extern" in linkage):
                    variables[variable.name] = variable
                    self.scopes[0][variable.name] = Symbol(variable.name)
            else:
                raise self.error(f"no declaration starts with {self.token!r}")
        kept = [each for each in variables.values() if each.space in ("global", "const")]
        state = {each.name: bytearray(each.initial.ljust(each.nbytes, b"\0")) for each in kept}
        return Module(functions, variables, state)

    def skip_line(self) -> None:
        """Pass the tokens of this line: directives of debuggers."""
        line = self.lines[self.at]
        while self.token != _END and self.lines[self.at] == line:
            self.at += 1

    def variables(self, is_extern: bool = False) -> list[Variable]:
        """``.space .align n .type name[extent] = initial, ...;``"""
        space = self.take()[1:]
        declared = [self.variable(space, is_extern)]
        while self.accept(","):
            declared.append(self.one_variable(space, declared[0].type, declared[0].align, is_extern))
        self.expect(";")
        return declared

    def variable(self, space: str, is_extern: bool = False) -> Variable:
        """``.align n .type name[extent] = initial`` with attributes in any order."""
        align, kind, lanes = 0, "", 1
        while self.token.startswith("."):
            word = self.take()[1:]
            if word == "align":
                align = int(self.take())
            elif word in WIDTHS:
                kind = word
            elif word in ("v2", "v4"):
                lanes = int(word[1:])
            elif word == "attribute":
                while not self.accept(")"):
                    self.take()
            elif word not in ("ptr", "global", "const", "shared", "local", "managed"):
                raise self.error(f"unknown attribute .{word}", self.at - 1)
        return self.one_variable(space, kind, align or WIDTHS[kind] * lanes, is_extern, lanes)

    def one_variable(self, space: str, kind: str, align: int, is_extern: bool, lanes: int = 1) -> Variable:
        """A name with extents and initial values."""
        name, count, extents = self.take(), lanes, []
        while self.accept("["):
            extents.append(0 if self.token == "]" else int(self.take(), 0))
            self.expect("]")
        for extent in extents:
            count *= extent
        initial = self.initial(kind) if self.accept("=") else b""
        nbytes = max(count * WIDTHS[kind], len(initial))
        return Variable(name, space, kind, nbytes, align, initial, is_extern)

    def initial(self, kind: str) -> bytes:
        """A number, or numbers in nested braces, as bytes."""
        if self.accept("{"):
            parts = []
            while not self.accept("}"):
                parts.append(self.initial(kind))
                self.accept(",")
            return b"".join(parts)
        if not _NUMBER.match(self.token):
            raise self.error("an initial value that is an address")
        return literal_bits(self.take(), kind).to_bytes(WIDTHS[kind], "little")

    # --- functions -------------------------------------------------------------------------------------------------

    def function(self) -> Function:
        """``.entry name (params) directives { body }``, or a prototype."""
        is_entry = self.take() == ".entry"
        returns = self.params() if self.token == "(" else []
        name = self.take()
        self.scopes = self.scopes[:1]
        function = Function(name, is_entry, self.params() if self.token == "(" else [], returns)
        while self.token not in ("{", ";"):
            if self.take() == ".maxntid":
                function.threads = int(self.take())
                while self.accept(","):
                    function.threads *= int(self.take())
        if self.accept(";"):
            return function
        self.scopes.append({each.name: Symbol(each.name) for each in (*function.params, *returns)})
        self.expect("{")
        self.body(function)
        return function

    def params(self) -> list[Variable]:
        """Declarations in parentheses."""
        self.expect("(")
        found = []
        while not self.accept(")"):
            if self.accept(".reg"):
                raise self.error("parameters in registers")
            self.expect(".param")
            found.append(self.variable("param"))
            self.accept(",")
        return found

    def body(self, function: Function) -> None:
        """Statements up to the closing brace of the function."""
        depth = 1
        while depth:
            token = self.token
            if token == "}":
                depth -= 1
                self.take()
                self.scopes.pop()
            elif token == "{":
                depth += 1
                self.take()
                self.scopes.append({})
            elif token == ".reg":
                self.take()
                self.registers(function)
            elif token in _SPACES:
                for variable in self.variables():
                    self.local_variable(function, variable)
            elif token == ".pragma":
                while not self.accept(";"):
                    self.take()
            elif token in (".loc", ".file"):
                self.skip_line()
            elif self.tokens[self.at + 1] == ":":
                self.label(function)
            elif self.accept(";"):
                pass
            else:
                function.body.append(self.instruction())

    def label(self, function: Function) -> None:
        """``name:``, or a table of branch targets."""
        name = self.take()
        self.expect(":")
        if self.accept(".branchtargets"):
            targets = [self.take()]
            while self.accept(","):
                targets.append(self.take())
            self.expect(";")
            function.tables[name] = targets
        else:
            function.labels[name] = len(function.body)

    def unique(self, name: str) -> str:
        """A name of its own for what an inner scope declares."""
        if len(self.scopes) == 2:
            return name
        self.fresh += 1
        return f"{name}#{self.fresh}"

    def registers(self, function: Function) -> None:
        """``.reg .type a, %b<count>;``"""
        kind = self.take()[1:]
        while True:
            stem = self.take()
            names = [stem]
            if self.accept("<"):
                names = [f"{stem}{number}" for number in range(int(self.take()))]
                self.expect(">")
            for name in names:
                unique = self.unique(name)
                self.scopes[-1][name] = Register(unique)
                function.registers[unique] = kind
            if not self.accept(","):
                break
        self.expect(";")

    def local_variable(self, function: Function, variable: Variable) -> None:
        """A variable inside a function, under a unique name."""
        unique = self.unique(variable.name)
        self.scopes[-1][variable.name] = Symbol(unique)
        function.variables[unique] = Variable(unique, *[getattr(variable, key) for key in _AFTER_NAME])

    # --- instructions ----------------------------------------------------------------------------------------------

    def instruction(self) -> Instruction:
        """``@guard opcode operands;``"""
        line, guard = self.lines[self.at], None
        if self.accept("@"):
            negated = self.accept("!")
            found = self.name(self.take())
            assert isinstance(found, Register), "a guard is a register"
            guard = Register(found.name, negated)
        opcode = self.take()
        operands = []
        while not self.accept(";"):
            operands.append(self.operand())
            self.accept(",")
        return Instruction(tuple(opcode.split(".")), tuple(operands), guard, line, self.source[line - 1].strip())

    def operand(self) -> Operand:
        """One operand, with its ``|`` partner."""
        first = self.single()
        if self.accept("|"):
            return Vector((first, self.single()))
        return first

    def single(self) -> Operand:
        """One operand without a partner."""
        token = self.take()
        if token == "[":
            base, offset = self.name(self.take()), 0
            self.accept("+")
            if self.token != "]":
                offset = int(self.take(), 0)
            self.expect("]")
            assert not isinstance(base, Address | Vector), "an address has a simple base"
            return Address(base, offset)
        if token in ("{", "("):
            items, close = [], "}" if token == "{" else ")"
            while not self.accept(close):
                items.append(self.single())
                self.accept(",")
            return Vector(tuple(items))
        if token == "!":
            found = self.single()
            assert isinstance(found, Register), "only registers are negated"
            return Register(found.name, True)
        return self.name(token)

    def name(self, token: str) -> Register | Literal | Symbol:
        """What a token means here."""
        for scope in reversed(self.scopes):
            if token in scope:
                return scope[token]
        if _NUMBER.match(token):
            return Literal(token)
        if token == "_" or token.startswith("%"):
            return Register(token)
        if token == "WARP_SZ":
            return Literal("32")
        return Symbol(token)


_AFTER_NAME = ("space", "type", "nbytes", "align", "initial", "is_extern")


def literal_bits(text: str, kind: str) -> int:
    """The bits of a number in an instruction of a type, as an unsigned integer of its width."""
    bits = 8 * WIDTHS[kind]
    lowered = text.lower()
    if lowered.startswith("0f"):
        value = int(text[2:], 16)
        return value if bits <= 32 else _float_bits(struct.unpack("<f", value.to_bytes(4, "little"))[0], bits)
    if lowered.startswith("0d"):
        value = int(text[2:], 16)
        return value if bits == 64 else _float_bits(struct.unpack("<d", value.to_bytes(8, "little"))[0], bits)
    if "." in text or (kind.startswith("f") and "x" not in lowered):
        return _float_bits(float(text), bits)
    sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text.lstrip("+"))
    digits = digits.rstrip("uU")
    base = 8 if re.fullmatch(r"0[0-7]+", digits) else 0
    return sign * int(digits, base) & ((1 << bits) - 1)


def _float_bits(value: float, bits: int) -> int:
    return int.from_bytes(struct.pack({16: "<e", 32: "<f", 64: "<d"}[bits], value), "little")
