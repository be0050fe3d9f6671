"""Built-in functions with effects: atomics, and those that return through pointers."""

from __future__ import annotations

from fusec.base.dtypes import BOOL, DType, c_common
from fusec.errors.language import ArgumentCount, BadArgument, NotSupported
from fusec.frontends.c import syntax as s
from fusec.frontends.c.arithmetic import convert, to
from fusec.frontends.c.frame import FunctionFrame
from fusec.frontends.c.functions import floating
from fusec.frontends.c.lvalues import LvalueLowering
from fusec.frontends.c.storage import target_type
from fusec.frontends.c.symbols import Address, Place, RawArray, Variable
from fusec.frontends.lowering import CallSite
from fusec.ir.expr import Expr, apply, scalar_type
from fusec.ir.loops import Atomic, AtomicOp, If, Local

ATOMICS: dict[str, AtomicOp] = {
    "atomicAdd": "add", "atomicSub": "subtract", "atomicMin": "minimum", "atomicMax": "maximum", "atomicAnd": "and",
    "atomicOr": "or", "atomicXor": "xor", "atomicExch": "exchange", "atomicCAS": "compare_exchange",
}  # fmt: skip
_BITWISE = ("and", "or", "xor")
_PLAIN = {
    "add": "add", "subtract": "subtract", "minimum": "minimum", "maximum": "maximum", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor",
}  # fmt: skip
RESULTS = {"modf": ("modf_fraction", "trunc"), "frexp": ("frexp_mantissa", "frexp_exponent")}  # returned, and stored
THROUGH_POINTERS = {"sincos": 3, "sincospi": 3, "modf": 2, "frexp": 2}  # numbers of arguments


class Effects:
    """Lowers calls of built-in functions that have effects."""

    def __init__(self, frame: FunctionFrame, lvalues: LvalueLowering) -> None:
        self.frame, self.lvalues, self.storage = frame, lvalues, lvalues.storage

    def atomic(self, name: str, node: s.CallNode, wanted: bool) -> Expr | None:
        """An atomic function; the old value if it is needed. Raises ArgumentCount or BadArgument."""
        op = ATOMICS[name]
        count = 3 if op == "compare_exchange" else 2
        if len(node.args) != count:
            raise ArgumentCount(name, str(count), len(node.args)).at(node.span)
        target = self._target(name, node.args[0])
        dtype = target.element if isinstance(target, Address) else target.type
        assert isinstance(dtype, DType), "only scalars are targets of atomics"
        self._check_atomic(name, op, dtype, node)
        values = tuple(convert(self.frame.value(arg), dtype, arg.span) for arg in node.args[1:])
        if isinstance(target, Address):
            return self._atomic_in_memory(op, target, values, node, wanted)
        return self._atomic_in_register(op, target, values, node)

    def _target(self, name: str, node: s.Expression) -> Place:
        """What an atomic works on: ``&x[i]``, a pointer, or the address of a variable of this element alone."""
        match node:
            case s.Prefix(op="&", operand=operand):
                found = self.lvalues.place(operand, "'&'")
                if isinstance(found, (Address, Variable)):
                    return found
            case s.Name() if isinstance(raw := self.frame.find(node.name), RawArray):
                raise self.lvalues.not_a_value(raw, node)
            case _ if self.lvalues.is_pointer(node):
                return self.lvalues.address(node)
        raise BadArgument(name, "this as its first argument", "pass the address of an element: &x[i]").at(node.span)

    def _check_atomic(self, name: str, op: AtomicOp, dtype: DType, node: s.CallNode) -> None:
        if dtype.is_complex or dtype == BOOL:
            cure = "update the parts with two arrays" if dtype.is_complex else "store true; all writers store the same"
            raise BadArgument(name, f"{dtype} elements", cure).at(node.span)
        if op in _BITWISE and not dtype.is_integer:
            raise BadArgument(name, f"{dtype} elements", "bitwise atomics take integers").at(node.span)

    def _atomic_in_memory(
        self, op: AtomicOp, target: Address, values: tuple[Expr, ...], node: s.CallNode, wanted: bool
    ) -> Expr | None:
        real = target_type(target.pointer)
        if real != target.element and op in ("minimum", "maximum"):
            raise NotSupported("an ordered atomic through a pointer of other sign is", "use an array of that type").at(
                node.span
            )
        if target.const:
            self.storage.store(target, values[0], node.span)  # raises: the element may not be written
        self.storage.touch(target.pointer)
        result = self.frame.variable(real, "_old") if wanted else None
        given = tuple(to(value, real) for value in values)
        self.frame.emit(Atomic(op, target.pointer, given, result.name if result else "", line=self.frame.line))
        return to(result, target.element) if result else None

    def _atomic_in_register(self, op: AtomicOp, target: Place, values: tuple[Expr, ...], node: s.CallNode) -> Expr:
        """The same on a variable that no other element sees: plain operations do."""
        old = self.frame.temporary(self.storage.load(target), "_old")
        match op:
            case "exchange":
                self.storage.store(target, values[0], node.span)
            case "compare_exchange":
                with self.frame.block() as then:
                    self.storage.store(target, values[1], node.span)
                self.frame.emit(If(apply("equal", old, values[0]), tuple(then), line=self.frame.line))
            case _:
                common = c_common(scalar_type(old), scalar_type(values[0]))
                self.storage.store(target, apply(_PLAIN[op], to(old, common), to(values[0], common)), node.span)
        return old

    # --- results through pointers ---

    def through_pointers(self, name: str, node: s.CallNode) -> Expr | None:
        """sincos, sincospi, modf and frexp."""
        plain = name.removesuffix("f") if name != "modf" else name
        if len(node.args) != THROUGH_POINTERS[plain]:
            raise ArgumentCount(name, str(THROUGH_POINTERS[plain]), len(node.args)).at(node.span)
        site = CallSite(name, node.span)
        (x,) = floating(site, [self.frame.value(node.args[0])], single=name != plain)
        value = x if isinstance(x, Local) else self.frame.temporary(x)
        if plain in RESULTS:
            kept, stored = RESULTS[plain]
            rest = self.frame.temporary(apply(kept, value))  # before the store, which may go to x itself
            self._put(node.args[1], apply(stored, value))
            return rest
        suffix = plain.removeprefix("sincos")
        parts = [self.frame.temporary(apply(f"{op}{suffix}", value)) for op in ("sin", "cos")]
        for arg, part in zip(node.args[1:], parts, strict=True):
            self._put(arg, part)
        return None

    def _put(self, node: s.Expression, value: Expr) -> None:
        """Store through a pointer argument: ``&variable``, ``&x[i]`` or a pointer."""
        if isinstance(node, s.Prefix) and node.op == "&":
            self.storage.store(self.lvalues.place(node.operand, "'&'"), value, node.span, wanted=False)
        else:
            self.storage.store(self.lvalues.address(node), value, node.span, wanted=False)
