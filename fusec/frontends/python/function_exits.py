"""How functions end: a kernel stores its results, a device function returns them; both in one place if they can."""

from __future__ import annotations

from typing import TypeVar

from fusec.base.dtypes import DType
from fusec.errors.language import TooDeep
from fusec.errors.python import NoReturn
from fusec.frontends.python import name_usage
from fusec.frontends.python import syntax as s
from fusec.frontends.python.annotations import dtype_of
from fusec.frontends.python.calls import parameter_values, result_of
from fusec.frontends.python.context import MAX_NESTING, Instance, Unit
from fusec.frontends.python.statements import Statements
from fusec.frontends.python.types import Kind, PythonType, carrier, storage
from fusec.frontends.python.values import Closure, Scalar, UserFunction, Value, converted, rounded
from fusec.frontends.python.variables import Binding
from fusec.ir.expr import Expr, Pointer, Struct
from fusec.ir.loops import Assign, Element, Function, Local, Make, Return, Store


class Device(Statements):
    """A function that others call. struct: its name, that of the struct in which it returns several numbers.

    ends: how many returns it has; several that need not return at once leave their results in `kept`.
    """

    struct = ""
    ends = 1
    kept: tuple[Local, ...] = ()

    def prepare(self, ends: int) -> None:
        """Before the body: make room for results that several returns give."""
        self.ends = ends
        if ends > 1 and self.result is not None:
            self.kept = tuple(self.declare(name, dtype) for name, dtype in self.places())

    def places(self) -> list[tuple[str, DType | Struct]]:
        """What is returned, by name and type."""
        assert self.result is not None, "the types of the results are known by now"
        kind = result_of(self.struct, self.result)
        assert not isinstance(kind, PythonType), "carriers are dtypes"
        return [("result", kind)]

    def finish(self, values: tuple[Scalar, ...]) -> None:
        """Give the results now, or keep them until the one end of the function."""
        found = self.final(values)
        if self.ends == 1 or self.loops or not self.tail:
            self.give(found)
            return
        for local, value in zip(self.kept, found, strict=True):
            self.emit(Assign(local.name, value, line=self.line))

    def run_body(self, body: s.Body) -> None:
        """Lower the whole text."""
        self.body(body)
        self.complete()

    def complete(self) -> None:
        """After the body: give what was kept."""
        if self.kept:
            self.line = 0
            self.give(self.kept)

    def final(self, values: tuple[Scalar, ...]) -> tuple[Expr, ...]:
        """The results as they are returned: one number, or several in a struct."""
        assert self.result is not None, "the types of the results are known by now"
        kind = result_of(self.struct, self.result)
        parts = tuple(value.read() for value in values)
        return (Make(parts, kind),) if isinstance(kind, Struct) else parts

    def give(self, found: tuple[Expr, ...]) -> None:
        """Return from a device function."""
        self.emit(Return(found[0], line=self.line))

    def instantiate(self, callee: UserFunction | Closure, given: dict[str, Value]) -> Instance:
        """A device function for certain arguments."""
        return instantiate(self.unit, callee, given)


def instantiate(
    unit: Unit, callee: UserFunction | Closure, given: dict[str, Value], wanted: tuple[Kind, ...] | None = None
) -> Instance:
    """Lower a function twice: once for the types of its results, and then for good. wanted: what these shall become."""
    tree = callee.tree if isinstance(callee, Closure) else unit.tree(callee.key)
    inside, params = parameter_values(given)
    name = unit.fresh(tree.name)
    kinds: tuple[Kind, ...] | None = None
    ends = 1
    for _ in range(2):
        frame = frame_of(Device, unit, callee.key, tree, {each for each, _ in params})
        frame.struct, frame.result = name, kinds
        frame.prepare(ends)
        for each, value in inside.items():
            frame.variables[each] = Binding(value, tree.span)
        found = run(frame, tree, dtype_of(tree.returns, unit, callee.key))
        kinds, ends = wanted or found, len(frame.returned)
    result = result_of(name, kinds or ())
    text = tree.span.file.line(tree.span.line).strip()
    types = tuple((each, carrier(value.type)) for each, value in params)
    assert not isinstance(result, PythonType), "carriers are dtypes"
    function = Function(name, types, result, tuple(frame.blocks[0]), text)
    return Instance(function, kinds or (), frame.returned[0][1])


class Kernel(Device):
    """The function that a call runs for every element. targets: its outputs with the dtypes of their arrays."""

    targets: tuple[tuple[str, DType], ...] = ()

    def places(self) -> list[tuple[str, DType | Struct]]:
        """The results, by output."""
        return list(self.targets)

    def final(self, values: tuple[Scalar, ...]) -> tuple[Expr, ...]:
        """The results as memory holds them."""
        pairs = zip(self.targets, values, strict=True)
        return tuple(
            converted(value.read(), dtype) if dtype != storage(value.type) else rounded(value)
            for (_, dtype), value in pairs
        )

    def give(self, found: tuple[Expr, ...]) -> None:
        """Store the results, and end the element's work if there is more that it must not do."""
        for (name, dtype), value in zip(self.targets, found, strict=True):
            self.emit(Store(Element(name, Pointer(dtype, "global")), value, line=self.line))
        if self.loops or not self.tail:
            self.emit(Return(line=self.line))


AnyDevice = TypeVar("AnyDevice", bound=Device)


def frame_of(kind: type[AnyDevice], unit: Unit, key: str, tree: s.Function, taken: set[str]) -> AnyDevice:
    """The state in which a function is lowered."""
    local_names = frozenset(name_usage.assigned(tree.body))
    frame = kind(unit, key, tree, local_names, taken)
    frame.returned = []
    return frame


def run(frame: Device, tree: s.Function, forced: DType | None) -> tuple[Kind, ...]:
    """Lower the body; the types of the results. Raises NoReturn or TooDeep."""
    try:
        frame.run_body(tree.body)
    except RecursionError:
        raise TooDeep(MAX_NESTING, "expressions").at(tree.span) from None
    if frame.reachable or not frame.returned:
        raise NoReturn(tree.name).at(tree.span)
    kinds = frame.results()
    return tuple(forced for _ in kinds) if forced is not None else kinds
