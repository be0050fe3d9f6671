"""Typed text of LLVM IR: values that are uniform (one scalar) or varying (one element for every lane), and a builder.

A `Value` knows its scalar LLVM type. Uniform values stay scalars until something varying needs them; the lane
positions `base + lane * step` stay symbolic until their vector is needed. With one lane nothing varies, and the same
builder writes plain scalar code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fusec.base.dtypes import BOOL, FLOAT32, FLOAT64, DType, real_type
from fusec.base.kernel_abi import Fp
from fusec.base.records import dataclass, replace
from fusec.ir.expr import Pointer, Struct, Type


@dataclass(frozen=True, slots=True)
class Linear:
    """Lane l of a value holds `base + l * step`, modulo its width.

    base: scalar operand text. low, high: bounds of every lane's exact value, when known: then nothing wraps.
    hint: only lanes that hold a position of an array are described (other lanes may have wrapped in a narrower type).
    """

    base: str
    step: int
    low: int | None = None
    high: int | None = None
    hint: bool = False

    def within(self, low: int, high: int) -> bool:
        """True if every lane is known to lie between the bounds (included)."""
        return self.low is not None and self.high is not None and low <= self.low and self.high <= high


@dataclass(frozen=True, slots=True)
class LinearAddress:
    """Lane l of an address is `base + l * stride`, in bytes; both are scalar operand texts."""

    base: str
    stride: str


@dataclass(frozen=True, slots=True)
class Value:
    """An operand: scalar LLVM type, text (empty for a linear value without a vector yet), and how it varies.

    made: of what varies, "zext" or "sext" and the narrower integer, or of an address its instruction and the index.
    """

    type: str
    text: str
    varying: bool = False
    linear: Linear | None = None
    walk: LinearAddress | None = None
    made: tuple[str, Value] | None = None

    @property
    def literal(self) -> int | None:
        """The value of a uniform integer literal."""
        if self.varying or not self.text or self.text[0] not in "-0123456789" or not self.type.startswith("i"):
            return None
        return int(self.text)


Operand = tuple[Value, ...]
"""The scalar parts of a value: two for complex, those of all fields for a struct, else one."""

TRUE = Value("i1", "true")
FALSE = Value("i1", "false")


def register_type(dtype: DType) -> str:
    """The LLVM type of a real dtype in registers; narrow floats are held as their bits."""
    assert not dtype.is_complex, "a complex value has two parts"
    if dtype == BOOL:
        return "i1"
    if dtype == FLOAT32:
        return "float"
    return "double" if dtype == FLOAT64 else f"i{dtype.bits}"


def memory_type(dtype: DType) -> str:
    """The LLVM type of a real dtype in memory."""
    return "i8" if dtype == BOOL else register_type(dtype)


def parts_of(kind: Type) -> tuple[DType | None, ...]:
    """The real dtypes a value of that type is made of; None stands for an address."""
    if isinstance(kind, Pointer):
        return (None,)
    if isinstance(kind, Struct):
        return tuple(part for _, field in kind.fields for part in parts_of(field))
    return (real_type(kind),) * (2 if kind.is_complex else 1)


def part_types(kind: Type) -> tuple[str, ...]:
    """The scalar LLVM types of the parts of a value of that type."""
    return tuple("ptr" if part is None else register_type(part) for part in parts_of(kind))


def bit_width(llvm: str) -> int:
    """Bits of a scalar LLVM type."""
    return {"float": 32, "double": 64, "half": 16, "bfloat": 16, "ptr": 64}.get(llvm) or int(llvm[1:])


def float_literal(bits: int, llvm: str) -> str:
    """The exact literal of a float or double from the bits of its storage; nan loses its payload."""
    if llvm == "double":
        return f"0x{bits:016X}"
    sign, exponent, mantissa = bits >> 31, bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:
        wide = 0x7FF << 52 | (1 << 51 if mantissa else 0)
    elif exponent:
        wide = exponent - 127 + 1023 << 52 | mantissa << 29
    elif mantissa:
        top = mantissa.bit_length()  # subnormal in float, normal in the literal's double
        wide = top - 150 + 1023 << 52 | (mantissa << 53 - top) & (1 << 52) - 1
    else:
        wide = 0
    return f"0x{sign << 63 | wide:016X}"


def integer_literal(value: int, llvm: str) -> str:
    """The literal of an integer modulo the width of its type."""
    bits = bit_width(llvm)
    value %= 1 << bits
    if bits == 1:
        return "true" if value else "false"
    return str(value - (1 << bits) if value >> bits - 1 else value)


def zero_of(llvm: str) -> str:
    """The literal of zero."""
    return {"float": "0.0", "double": "0.0", "half": "0.0", "bfloat": "0.0", "ptr": "null", "i1": "false"}.get(
        llvm, "0"
    )


def constant(bits: int, dtype: DType) -> Operand:
    """The literal operand of a constant from its bits."""
    if dtype.is_complex:
        part = real_type(dtype)
        return constant(bits & (1 << part.bits) - 1, part) + constant(bits >> part.bits, part)
    llvm = register_type(dtype)
    if dtype == BOOL:
        return (TRUE if bits else FALSE,)
    text = float_literal(bits, llvm) if llvm in ("float", "double") else integer_literal(bits, llvm)
    return (Value(llvm, text),)


def integer(value: int, llvm: str = "i64") -> Value:
    """A uniform integer literal."""
    return Value(llvm, integer_literal(value, llvm))


FLAGS = "reassoc nsz contract"
"""What the mode "fast" allows LLVM. With nnan and ninf a nan or an infinity would make results undefined; with arcp and
afn LLVM's division by sqrt(0) gives nan."""


@dataclass(frozen=True)
class LlvmOptions:
    """What a text is written for."""

    vector_bits: int = 512  # width of the target's vector registers; 0 for scalar code
    half_casts: bool = True  # it converts float16 to float32; else LLVM calls functions that may not be there
    permutes: int = 0  # bits of the registers whose elements x86 permutes by variable indices: 512, 256 (of float32), 0
    fp: Fp = "strict"  # the mode the passes ran in
    lanes: int | None = None  # of one vector step, a power of two, if the caller knows better; 1 for scalar code
    symbol: str | None = None  # the name of the function, else made from the program's

    @property
    def estimates(self) -> bool:
        """The target has good estimates of 1 / sqrt(x), of subnormal x too, and they will do."""
        return self.fp == "fast" and self.vector_bits >= 512


def lane_numbers(lanes: Sequence[int]) -> str:
    """Numbers of lanes, as shuffles take them."""
    return f"<{len(lanes)} x i32> <{', '.join(f'i32 {lane}' for lane in lanes)}>"


def _kind_of(operand: str) -> str:
    """The type of an operand that is given with it."""
    return operand[: operand.index(">") + 1] if operand[0] == "<" else operand.split(" ", 1)[0]


class Builder:
    """One LLVM function under construction: its instructions, stack slots and the intrinsics it declares.

    lanes: elements of a varying value; it may change while the text grows (a scalar remainder after a vector loop).
    declarations: of the module, in order. flags: fast-math flags of arithmetic on floats; nothing within elementary
    functions.
    """

    def __init__(self, lanes: int, declarations: dict[str, None], options: LlvmOptions) -> None:
        self.lanes = lanes
        self.options = options
        self.flags = FLAGS if options.fp == "fast" else ""
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.declarations = declarations
        self.top: list[str] = []  # instructions of the entry block, behind the loads of arguments: see `invariant`
        self.invariants: dict[tuple[object, ...], Any] = {}
        self.routines: dict[tuple[object, ...], Any] = {}  # also of those beside it: see `routines`, `packing`
        self.current = "entry"
        self._count = 0
        self._scratch = ""

    def beside(self) -> Builder:
        """A builder for another function of the module, which shares its routines."""
        other = Builder(self.lanes, self.declarations, self.options)
        other.flags, other.routines = self.flags, self.routines
        return other

    # --- plain text ----------------------------------------------------------------------------------------------

    def name(self, stem: str = "v") -> str:
        """A fresh register name."""
        self._count += 1
        return f"%{stem}{self._count}"

    def line(self, text: str) -> None:
        """One instruction without a result."""
        self.lines.append("  " + text)

    def let(self, text: str) -> str:
        """One instruction with a result; returns its register."""
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    def label(self, stem: str = "b") -> str:
        """A fresh block name."""
        self._count += 1
        return f"{stem}{self._count}"

    def place(self, label: str) -> None:
        """Start a block."""
        self.lines.append(f"{label}:")
        self.current = label

    def jump(self, label: str) -> None:
        """End the block by a jump."""
        self.line(f"br label %{label}")

    def fork(self, condition: Value, then: str, orelse: str) -> None:
        """End the block by a two-way branch on a uniform condition."""
        assert not condition.varying, "a branch needs one condition for all lanes"
        self.line(f"br i1 {condition.text}, label %{then}, label %{orelse}")

    def declare(self, text: str) -> None:
        """Declare an intrinsic once."""
        self.declarations[text] = None

    def call(self, result: str, name: str, *given: str, flags: str = "") -> str:
        """A call of a function outside the text, declared once. given: operands with their types. flags: fast-math.

        Returns the register of the result, "" without one.
        """
        self.declare(f"declare {result} @{name}({', '.join(map(_kind_of, given))})")
        text = f"call {f'{flags} ' if flags else ''}{result} @{name}({', '.join(given)})"
        if result != "void":
            return self.let(text)
        self.line(text)
        return ""

    def shuffle(self, vector: str, lanes: Sequence[int], other: str = "poison") -> str:
        """Lanes of a vector, given with its type, by their numbers; they go on in another vector of that type."""
        return self.let(f"shufflevector {vector}, {_kind_of(vector)} {other}, {lane_numbers(lanes)}")

    def at(self, base: str, nbytes: int | str) -> str:
        """The address some bytes further."""
        return self.let(f"getelementptr i8, ptr {base}, i64 {nbytes}")

    def address_of(self, base: Value, nbytes: int, position: str) -> Value:
        """The address of an element of so many bytes, as a number."""
        place = self.let(f"getelementptr [{nbytes} x i8], ptr {base.text}, i64 {position}")
        return Value("i64", self.let(f"ptrtoint ptr {place} to i64"))

    @contextmanager
    def when(self, condition: Callable[[], Value], inside: str = "some", after: str = "after") -> Iterator[None]:
        """A block that runs where a uniform condition holds, and the one after it. inside, after: their names."""
        inside, after = self.label(inside), self.label(after)
        self.fork(condition(), inside, after)
        self.place(inside)
        yield
        self.jump(after)
        self.place(after)

    def table(self, text: str) -> str:
        """The name of a constant array of the module, given its type and value."""
        tables = [line for line in self.declarations if line.startswith("@table")]
        known = [line.split(" ", 1)[0] for line in tables if line.endswith(f" constant {text}")]
        name = known[0] if known else f"@table{len(tables)}"
        self.declare(f"{name} = private unnamed_addr constant {text}")
        return name

    # --- types and lanes -----------------------------------------------------------------------------------------

    def vector_type(self, llvm: str) -> str:
        """The LLVM type of a varying value of scalar type `llvm`."""
        return f"<{self.lanes} x {llvm}>"

    def type_of(self, value: Value) -> str:
        """The LLVM type of a value."""
        return self.vector_type(value.type) if value.varying else value.type

    def typed(self, value: Value) -> str:
        """Type and text, as operands are written; a linear value gets its vector."""
        if value.varying and not value.text:
            value = self.materialised(value)
        return f"{self.type_of(value)} {value.text}"

    @staticmethod
    def scalar_suffix(llvm: str) -> str:
        """A scalar type in the name of an overloaded intrinsic."""
        return {"float": "f32", "double": "f64", "half": "f16", "bfloat": "bf16", "ptr": "p0"}.get(llvm, llvm)

    def suffix(self, value: Value) -> str:
        """The type suffix of an overloaded intrinsic."""
        return (f"v{self.lanes}" if value.varying else "") + self.scalar_suffix(value.type)

    def splat_text(self, llvm: str, text: str) -> str:
        """The vector text that repeats a scalar; a literal needs no instruction."""
        if not text.startswith("%"):
            return f"splat ({llvm} {text})" if text not in ("null",) else "zeroinitializer"
        vector = self.vector_type(llvm)
        first = self.let(f"insertelement {vector} poison, {llvm} {text}, i64 0")
        return self.let(f"shufflevector {vector} {first}, {vector} poison, <{self.lanes} x i32> zeroinitializer")

    def iota(self, llvm: str, step: int = 1) -> str:
        """The constant vector 0, step, 2 step, ..."""
        return "<" + ", ".join(f"{llvm} {integer_literal(lane * step, llvm)}" for lane in range(self.lanes)) + ">"

    def materialised(self, value: Value) -> Value:
        """A varying value whose vector exists."""
        if value.text:
            return value
        linear = value.linear
        assert linear is not None, "a value without text must be linear"
        if value.type == "ptr":
            vector = self.vector_type("ptr")
            text = self.let(
                f"getelementptr i8, ptr {linear.base}, <{self.lanes} x i64> {self.iota('i64', linear.step)}"
            )
            return Value("ptr", text, varying=True, linear=linear)
        vector = self.vector_type(value.type)
        base = self.splat_text(value.type, linear.base)
        text = self.let(f"add {vector} {base}, {self.iota(value.type, linear.step)}")
        return Value(value.type, text, varying=True, linear=linear)

    def spread(self, value: Value) -> Value:
        """The value as a vector (with one lane: as it is)."""
        if self.lanes == 1:
            return value
        if value.varying:
            return self.materialised(value)
        return Value(value.type, self.splat_text(value.type, value.text), varying=True)

    def agree(self, *values: Value) -> list[Value]:
        """All as scalars if none varies, else all as vectors."""
        if any(value.varying for value in values):
            return [self.spread(value) for value in values]
        return list(values)

    # --- instructions --------------------------------------------------------------------------------------------

    def binary(self, op: str, left: Value, right: Value) -> Value:
        """An instruction on two operands of one type."""
        left, right = self.agree(left, right)
        return Value(left.type, self.let(f"{op} {self.type_of(left)} {left.text}, {right.text}"), left.varying)

    def arithmetic(self, op: str, left: Value, right: Value) -> Value:
        """An instruction on two floats, with the flags in force."""
        return self.binary(f"{op} {self.flags}" if self.flags else op, left, right)

    def compare(self, op: str, left: Value, right: Value) -> Value:
        """A comparison: `op` is e.g. ``icmp slt`` or ``fcmp olt``."""
        left, right = self.agree(left, right)
        return Value("i1", self.let(f"{op} {self.type_of(left)} {left.text}, {right.text}"), left.varying)

    def cast(self, op: str, value: Value, llvm: str) -> Value:
        """A conversion instruction to scalar type `llvm`."""
        if value.type == llvm:
            return value
        value = self.materialised(value) if value.varying else value
        target = self.vector_type(llvm) if value.varying else llvm
        made = (op, value) if value.varying and op in ("zext", "sext") else None
        return Value(llvm, self.let(f"{op} {self.typed(value)} to {target}"), value.varying, made=made)

    def cast_integer(self, value: Value, llvm: str) -> Value:
        """An integer modulo the width of another integer type."""
        return self.cast("trunc" if bit_width(value.type) > bit_width(llvm) else "zext", value, llvm)

    def intrinsic(self, name: str, *values: Value, extra: str = "", result: str = "", flags: str = "") -> Value:
        """A call of an overloaded intrinsic on operands of one type; `extra` is a literal last argument.

        result: scalar type of the result, if not that of the operands (then the name is overloaded by it as well).
        flags: fast-math flags of the call.
        """
        args = self.agree(*values)
        first = args[0]
        target = Value(result or first.type, "", first.varying)
        overloads = (f"{self.suffix(target)}." if result else "") + self.suffix(first)
        given = [self.typed(value) for value in args] + ([extra] if extra else [])
        return replace(target, text=self.call(self.type_of(target), f"llvm.{name}.{overloads}", *given, flags=flags))

    def select(self, condition: Value, then: Value, orelse: Value) -> Value:
        """Choose by a bool; lane by lane if the bool varies."""
        if condition.text == "true" or then == orelse:
            return then
        if condition.text == "false":
            return orelse
        if condition.varying:
            then, orelse = self.spread(then), self.spread(orelse)
        then, orelse = self.agree(then, orelse)
        text = self.let(f"select {self.typed(condition)}, {self.typed(then)}, {self.typed(orelse)}")
        return Value(then.type, text, then.varying)

    def select_parts(self, condition: Value, then: Operand, orelse: Operand) -> Operand:
        """Choose between values of any type."""
        return tuple(self.select(condition, a, b) for a, b in zip(then, orelse, strict=True))

    def invert(self, value: Value) -> Value:
        """The complement of a bool or an integer."""
        if value.type == "i1" and value.text in ("true", "false"):
            return FALSE if value.text == "true" else TRUE
        return self.binary("xor", value, Value(value.type, "true" if value.type == "i1" else "-1"))

    def both(self, left: Value | None, right: Value | None) -> Value | None:
        """The conjunction of two masks; None is the mask of all lanes."""
        if left is None or right is None:
            return left if right is None else right
        return right if left.text == right.text else self.binary("and", left, right)

    def any_lane(self, mask: Value | None) -> Value:
        """Whether the mask has a lane."""
        if mask is None:
            return TRUE
        if not mask.varying:
            return mask
        return Value("i1", self.call("i1", f"llvm.vector.reduce.or.v{self.lanes}i1", self.typed(mask)))

    # --- stack slots ---------------------------------------------------------------------------------------------

    def alloca(self, llvm: str, align: int = 0) -> str:
        """A stack slot, placed in the entry block; returns its address."""
        name = self.name("m")
        self.allocas.append(f"  {name} = alloca {llvm}" + (f", align {align}" if align else ""))
        return name

    def read_slot(self, slot: str, llvm: str = "i64", varying: bool = False) -> Value:
        """The value in a stack slot."""
        kind = self.vector_type(llvm) if varying else llvm
        return Value(llvm, self.let(f"load {kind}, ptr {slot}"), varying)

    def write_slot(self, slot: str, value: Value, varying: bool = False) -> None:
        """Write a value to a stack slot of a uniform or varying variable."""
        value = self.spread(value) if varying else value
        assert value.varying == varying, "a varying value does not fit a uniform variable"
        self.line(f"store {self.typed(value)}, ptr {slot}")

    def read_slots(self, slots: Sequence[str], kinds: Sequence[str], varying: bool) -> Operand:
        """The parts of a value in stack slots."""
        return tuple(self.read_slot(slot, llvm, varying) for slot, llvm in zip(slots, kinds, strict=True))

    def write_slots(self, slots: Sequence[str], parts: Operand, varying: bool) -> None:
        """Write the parts of a value to stack slots."""
        for slot, part in zip(slots, parts, strict=True):
            self.write_slot(slot, part, varying)

    def scratch(self) -> str:
        """The address of 64 bytes that stand in for memory that must not be touched."""
        if not self._scratch:
            self._scratch = self.alloca("[64 x i8]", 64)
            self.allocas.append(f"  store <64 x i8> zeroinitializer, ptr {self._scratch}")
        return self._scratch


def registers(b: Builder, text: str, llvm: str, length: int) -> list[str]:
    """A vector as registers of `length` lanes; a shorter one is repeated."""
    if b.lanes == length:
        return [text]
    vector, starts = f"{b.vector_type(llvm)} {text}", range(0, max(b.lanes, length), length)
    return [b.shuffle(vector, [(start + lane) % b.lanes for lane in range(length)]) for start in starts]


def joined(b: Builder, found: list[str], llvm: str, length: int) -> str:
    """The registers as one vector of all lanes."""
    width = length
    while len(found) > 1:
        pairs = zip(found[::2], found[1::2], strict=True)
        found = [b.shuffle(f"<{width} x {llvm}> {left}", range(2 * width), right) for left, right in pairs]
        width *= 2
    return b.shuffle(f"<{width} x {llvm}> {found[0]}", range(b.lanes)) if width > b.lanes else found[0]
