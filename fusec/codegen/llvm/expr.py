"""Expressions as LLVM instructions: evaluated once per statement, operands on demand where they may not be evaluated.

Depth of an expression costs no Python stack except where evaluation is on demand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fusec.base.dtypes import INT64, DType
from fusec.base.kernel_abi import Layout, SlotKind, Step
from fusec.base.records import dataclass, replace
from fusec.codegen.llvm import memory
from fusec.codegen.llvm.arguments import KernelSlots
from fusec.codegen.llvm.arith import apply_op
from fusec.codegen.llvm.cost import Costs
from fusec.codegen.llvm.divergence import Analysis, FlowPlan, local_access
from fusec.codegen.llvm.flow_frame import FlowFrame, VarSlot
from fusec.codegen.llvm.lookup import lookup
from fusec.codegen.llvm.memory import PLAIN, Hint, Lanes
from fusec.codegen.llvm.values import (
    Builder,
    Linear,
    LinearAddress,
    Operand,
    Value,
    constant,
    integer,
    memory_type,
    part_types,
    parts_of,
    zero_of,
)
from fusec.ir import loops as ir
from fusec.ir.axes import distances_of
from fusec.ir.expr import Apply, Const, Expr, Lookup, Pointer, Struct, Type, scalar_type, type_of

WORTH_SKIPPING = 24  # operations on demand that no lane may want: above this a branch costs less
_CHEAPER_THAN_BRANCH = 4  # operations, for one lane: below this a select costs less than a branch


class ElementSpace:
    """Where the elements being worked on lie. This one, of a function that is called, has no current element."""

    def element(self, param: str) -> Value:
        """The address of the current element of an array."""
        raise AssertionError(f"a function that is called has no current element of {param}")

    def hoisted(self, param: str) -> Operand | None:  # noqa: ARG002
        """The element itself if it was loaded before the loop."""
        return None

    def neighbour(self, param: str, distances: tuple[int, ...]) -> Value | None:  # noqa: ARG002
        """The address of an element of a raw array so far from the current one along each axis, if it is known."""
        return None

    def hint(self, param: str, moved: bool) -> Hint:  # noqa: ARG002
        """How to store the current element, or one moved by constants."""
        return PLAIN

    def keeps(self, pointer: ir.Element | ir.Moved, value: Operand) -> bool:  # noqa: ARG002
        """Whether what is to be stored there by all lanes is kept, to be stored later."""
        return False

    def agrees(self, comparison: Apply) -> bool:  # noqa: ARG002
        """Whether a comparison of positions is known to come out the same for all lanes."""
        return False

    def index(self) -> Value:
        """The flat C-order position."""
        raise AssertionError("a function that is called has no position")

    def coordinate(self, axis: int) -> Value:
        """The position along an axis."""
        raise AssertionError(f"a function that is called has no coordinate {axis}")


@dataclass(frozen=True)
class Surroundings:
    """What all text of one body shares. kept: functions that are called, not written out."""

    builder: Builder
    arguments: KernelSlots
    layout: Layout
    analysis: Analysis
    costs: Costs
    space: ElementSpace
    kept: frozenset[str] = frozenset()


class ExprEmitter(ABC):
    """Writes expressions; `lanes` are those active now, `root` those that exist (all but past the end of a row)."""

    def __init__(self, around: Surroundings, root: Lanes) -> None:
        self.around = around
        self.b = around.builder
        self.root = root
        self.lanes = root
        self.memo: dict[Expr, Operand] = {}
        self.frame = FlowFrame(FlowPlan([]), "")

    @abstractmethod
    def call(self, call: ir.Call, args: list[Operand]) -> Operand:
        """The result of a function, whose statements are not written here."""

    # --- evaluation order ----------------------------------------------------------------------------------------

    def value(self, root: Expr) -> Operand:
        """The operand of an expression, each part of it evaluated once."""
        pending = [root]
        while pending:
            expr = pending[-1]
            if expr not in self.memo:
                missing = [child for child in self._needed(expr) if child not in self.memo]
                if missing:
                    pending += reversed(missing)
                    continue
                self.memo[expr] = self._node(expr)
            pending.pop()
        return self.memo[root]

    def scalar(self, expr: Expr) -> Value:
        """The operand of an expression that has one part."""
        (value,) = self.value(expr)
        return value

    def _needed(self, expr: Expr) -> tuple[Expr, ...]:
        """The operands that are evaluated whatever happens."""
        match expr:
            case Apply(op="where" | "logical_and" | "logical_or", args=args) if self._is_on_demand(expr):
                return args[:1]
            case ir.Load(pointer=pointer):
                access = local_access(pointer)
                if access is not None and access[0] in self.frame.plan.apart:
                    return ()
        return expr.children

    def _is_on_demand(self, expr: Apply) -> bool:
        limit = _CHEAPER_THAN_BRANCH if self.b.lanes == 1 else WORTH_SKIPPING
        costs = self.around.costs
        return any(costs.is_unsafe(arg) or costs.of(arg) > limit for arg in expr.args[1:])

    @contextmanager
    def narrowed(self, lanes: Lanes) -> Iterator[None]:
        """Work on other lanes; what is evaluated meanwhile is forgotten afterwards."""
        before, memo = self.lanes, self.memo
        self.lanes, self.memo = lanes, dict(memo)
        yield
        self.lanes, self.memo = before, memo

    # --- nodes ---------------------------------------------------------------------------------------------------

    def _node(self, expr: Expr) -> Operand:
        match expr:
            case Const(bits=bits, type=dtype):
                return constant(bits, dtype)
            case ir.Local(name=name):
                return self.read(self.frame.variables[name])
            case Apply(op="where") if self._is_on_demand(expr):
                return self._choose(expr)
            case Apply(op="logical_and" | "logical_or") if self._is_on_demand(expr):
                return (self._short_circuit(expr),)
            case Apply(op=op, args=args, type=target) if self.around.space.agrees(expr):
                given = [tuple(map(_first_lane, self.memo[arg])) for arg in args]
                return apply_op(self.b, op, given, scalar_type(args[0]), target)
            case Apply(op=op, args=args, type=target):
                return apply_op(self.b, op, [self.memo[arg] for arg in args], scalar_type(args[0]), target)
            case Lookup(values=values, index=index, type=target):
                entries = [entry.bits for entry in values]
                return (lookup(self.b, entries, target, self.memo[index][0]),)
            case ir.Load():
                return self._load(expr)
            case ir.Call(args=args):
                return self.call(expr, [self.memo[arg] for arg in args])
            case ir.Query():
                return (self._query(expr),)
            case ir.Field(value=value, name=name):
                return self._field(self.memo[value], type_of(value), name)
            case ir.Make(fields=fields):
                return tuple(part for item in fields for part in self.memo[item])
        return (self._address(expr),)

    def read(self, variable: VarSlot) -> Operand:
        """The value of a variable."""
        if not variable.slots:
            return variable.value
        return self.b.read_slots(variable.slots, part_types(variable.type), variable.varying)

    def _field(self, value: Operand, kind: Type, name: str) -> Operand:
        assert isinstance(kind, Struct), "only structs have fields"
        start, count = field_range(kind, name)
        return value[start : start + count]

    # --- operands on demand --------------------------------------------------------------------------------------

    def _choose(self, expr: Apply) -> Operand:
        """`where` with operands that may not be evaluated, or not for nothing."""
        condition = self.memo[expr.args[0]][0]
        then, orelse = expr.args[1:]
        if not condition.varying:
            return self._branch(condition, lambda: self.value(then), lambda: self.value(orelse))
        chosen = self._wanted(then, condition)
        return self.b.select_parts(condition, chosen, self._wanted(orelse, self.b.invert(condition)))

    def _short_circuit(self, expr: Apply) -> Value:
        first = self.memo[expr.args[0]][0]
        wanted = first if expr.op == "logical_and" else self.b.invert(first)
        known = Value("i1", "false" if expr.op == "logical_and" else "true")
        if not first.varying:
            return self._branch(wanted, lambda: self.value(expr.args[1]), lambda: (known,))[0]
        second = self._wanted(expr.args[1], wanted)[0]
        return self.b.binary("and" if expr.op == "logical_and" else "or", first, second)

    def _wanted(self, expr: Expr, condition: Value) -> Operand:
        """An operand for the lanes of a varying condition, with a branch around it if it costs much."""
        costs = self.around.costs
        if not costs.is_unsafe(expr) and costs.of(expr) <= WORTH_SKIPPING:
            return self.value(expr)
        mask = self.b.both(self.lanes.mask, condition)
        if costs.of(expr) <= WORTH_SKIPPING:
            with self.narrowed(Lanes(mask, occupied=False)):
                return self.value(expr)
        types = part_types(type_of(expr))
        nothing = tuple(Value(llvm, zero_of(llvm)) for llvm in types)

        def evaluate() -> Operand:
            self.lanes = Lanes(mask, occupied=True)
            return self.value(expr)

        return self._branch(self.b.any_lane(mask), evaluate, lambda: nothing)

    def _branch(self, condition: Value, then: Callable[[], Operand], orelse: Callable[[], Operand]) -> Operand:
        """Either of two values, of which only one is computed."""
        labels = self.b.label("then"), self.b.label("else")
        done = self.b.label("join")
        self.b.fork(condition, *labels)
        arms: list[tuple[Operand, str, int]] = []
        for label, evaluate in zip(labels, (then, orelse), strict=True):
            self.b.place(label)
            with self.narrowed(self.lanes):
                value = evaluate()
            value = tuple(self.b.materialised(part) if part.varying else part for part in value)
            arms.append((value, self.b.current, len(self.b.lines)))
            self.b.jump(done)
        return self._joined(arms, done)

    def _joined(self, arms: list[tuple[Operand, str, int]], done: str) -> Operand:
        """The values of two arms where they meet; a uniform one is spread at the end of its arm."""
        varies = [any(arm[0][k].varying for arm in arms) for k in range(len(arms[0][0]))]
        spread = []
        for value, _, end in reversed(arms):
            rest, self.b.lines[end:] = self.b.lines[end:], []
            spread.append(tuple(self.b.spread(p) if v else p for p, v in zip(value, varies, strict=True)))
            self.b.lines += rest
        first, second = reversed(spread)
        self.b.place(done)
        result = []
        for left, right in zip(first, second, strict=True):
            sources = f"[ {left.text}, %{arms[0][1]} ], [ {right.text}, %{arms[1][1]} ]"
            result.append(Value(left.type, self.b.let(f"phi {self.b.type_of(left)} {sources}"), left.varying))
        return tuple(result)

    # --- memory --------------------------------------------------------------------------------------------------

    def _load(self, expr: ir.Load) -> Operand:
        access = local_access(expr.pointer)
        if access is not None and access[0] in self.frame.plan.apart:
            return self.read(self.frame.variables[element_name(*access)])
        if isinstance(expr.pointer, ir.Element):
            hoisted = self.around.space.hoisted(expr.pointer.param)
            if hoisted is not None:
                return hoisted
            # The current element can be read whatever the program decides about it.
            return memory.load(self.b, self.memo[expr.pointer][0], expr.type, self.root)
        address = self.memo[expr.pointer][0]
        if address.varying and address.linear is None and self._follows_position(expr.pointer):
            return self._load_if_consecutive(address, expr.type)
        if isinstance(expr.pointer, ir.At) and address.walk is not None and self.lanes.mask is None:
            return self._load_spaced(address, address.walk, expr.type)
        return memory.load(self.b, address, expr.type, self.lanes)

    def _follows_position(self, pointer: Expr) -> bool:
        """An index computed without memory, from rows and columns perhaps: mostly, neighbours stay neighbours.

        Only whole vectors try: for what is left over at the end of a row, a second way costs more text than time.
        """
        if self.root.mask is not None or not isinstance(pointer, ir.At) or len(pointer.index) != 1:
            return False
        return dict(self.around.layout.raw)[pointer.param][1] and self.around.costs.follows_position(pointer.index[0])

    def _load_if_consecutive(self, address: Value, dtype: DType) -> Operand:
        """One vector load if it turns out at run time that the lanes want consecutive elements, else a gather."""
        b = self.b
        first = b.let(f"extractelement {b.typed(address)}, i64 0")
        linear = Value("ptr", "", varying=True, linear=Linear(first, dtype.nbytes))
        differs = b.any_lane(b.compare("icmp ne", address, b.materialised(linear)))
        lanes = self.lanes
        return self._branch(
            differs,
            lambda: memory.load(b, address, dtype, lanes),
            lambda: memory.load(b, linear, dtype, lanes),
        )

    def _load_spaced(self, address: Value, walk: LinearAddress, dtype: DType) -> Operand:
        """Elements of an array whose stride turns out at run time: one for all lanes, consecutive ones, or others."""
        b, lanes, stride = self.b, self.lanes, Value("i64", walk.stride)
        linear = Value("ptr", "", varying=True, linear=Linear(walk.base, dtype.nbytes))
        return self._branch(
            b.compare("icmp eq", stride, integer(dtype.nbytes)),
            lambda: memory.load(b, linear, dtype, lanes),
            lambda: self._branch(
                b.compare("icmp eq", stride, integer(0)),
                lambda: memory.load(b, Value("ptr", walk.base), dtype, lanes),
                lambda: memory.load(b, address, dtype, lanes),
            ),
        )

    def _address(self, expr: Expr) -> Value:
        match expr:
            case ir.Element(param=param):
                return self.around.space.element(param)
            case ir.LocalArray(name=name):
                stack = self.frame.stacks[name]
                linear = Linear(stack.address, expr.type.element.nbytes) if stack.varying else None
                text = "" if linear else stack.address
                return Value("ptr", text, varying=stack.varying, linear=linear)
            case ir.Offset(pointer=pointer, offset=offset):
                scale = self._spacing(pointer, expr.type)
                return self.moved(self.memo[pointer][0], self.memo[offset][0], scale)
            case ir.At():
                return self._at(expr)
            case ir.Moved():
                return self._moved_element(expr)
        raise AssertionError(f"no expression of this target: {expr}")

    def _spacing(self, pointer: Expr, kind: Pointer) -> int:
        """Bytes from one element to the next: local arrays interleave the lanes, unless they are uniform."""
        while isinstance(pointer, ir.Offset):
            pointer = pointer.pointer
        if kind.space == "global" or (
            isinstance(pointer, ir.LocalArray) and not self.frame.stacks[pointer.name].varying
        ):
            return kind.element.nbytes
        return kind.element.nbytes * self.b.lanes

    def moved(self, pointer: Value, index: Value, scale: int) -> Value:
        """An address moved by a number of elements of `scale` bytes; consecutive positions stay symbolic."""
        b = self.b
        if index.literal == 0:
            return pointer
        unit = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}.get(scale, f"[{scale} x i8]")
        step = f"getelementptr {unit}, ptr"
        if not index.varying:
            if pointer.linear is not None:
                base = b.let(f"{step} {pointer.linear.base}, i64 {index.text}")
                return Value("ptr", "", varying=True, linear=Linear(base, pointer.linear.step))
            pointers, walk = b.typed(pointer), pointer.walk
            if walk is not None:
                walk = LinearAddress(b.let(f"{step} {walk.base}, i64 {index.text}"), walk.stride)
            text = b.let(f"getelementptr {unit}, {pointers}, i64 {index.text}")
            return Value("ptr", text, pointer.varying, walk=walk)
        if not pointer.varying and index.linear is not None:
            base = b.let(f"{step} {pointer.text}, i64 {index.linear.base}")
            linear = Linear(base, index.linear.step * scale)
            if not index.linear.hint:
                return Value("ptr", "", varying=True, linear=linear)
            text = b.let(f"{step} {pointer.text}, {b.typed(index)}")
            return Value("ptr", text, varying=True, linear=linear)
        made = None if pointer.varying else (f"{step} {pointer.text}", index)
        return Value("ptr", b.let(f"getelementptr {unit}, {b.typed(pointer)}, {b.typed(index)}"), True, made=made)

    def _moved_element(self, expr: ir.Moved) -> Value:
        """The address of an element at another position of the iteration space."""
        address, steps = self.around.space.element(expr.param), self.around.layout.step(expr.param)
        for axis, distance in zip(expr.axes, expr.distances, strict=True):
            (index,), nbytes = self.memo[distance], expr.type.element.nbytes
            if steps[axis] is Step.UNIT:
                address = self.moved(address, index, nbytes)
            elif steps[axis] is Step.ANY:
                stride = self.around.arguments.number("stride", expr.param, axis)
                address = self.moved(address, self._int64("multiply", index, stride), 1)
        return address

    def _at(self, expr: ir.At) -> Value:
        """The address of an element of a raw array, by its position or its coordinates."""
        distances = distances_of(expr.index)
        near = None if distances is None else self.around.space.neighbour(expr.param, distances)
        if near is not None:
            return near
        arguments, dtype = self.around.arguments, expr.type.element
        ndim, contiguous = dict(self.around.layout.raw)[expr.param]
        base = arguments.pointer(expr.param, dtype)
        index = [self.memo[part][0] for part in expr.index]
        if len(index) == 1 and (contiguous or ndim == 0):
            return self.moved(base, index[0], dtype.nbytes)
        if len(index) == 1 and ndim > 1:
            index = self._unravelled(expr.param, index[0], ndim)
        assert len(index) == ndim, f"{expr.param} has {ndim} axes, indexed by {len(index)}"
        offset, spaced = integer(0), []
        for axis, part in enumerate(index):
            last = contiguous and axis == ndim - 1
            stride = integer(dtype.nbytes) if last else arguments.number("raw_stride", expr.param, axis)
            if part.varying:
                spaced.append((part, stride))
            else:
                offset = self._int64("add", self._int64("multiply", part, stride), offset)
        base = self.moved(base, offset, 1)
        if len(spaced) == 1 and spaced[0][0].linear is not None and spaced[0][1].literal is None:
            return self._spaced(base, *spaced[0])
        offset = integer(0)
        for part, stride in spaced:
            offset = self._int64("add", self._int64("multiply", part, stride), offset)
        return self.moved(base, offset, 1)

    def _spaced(self, base: Value, index: Value, stride: Value) -> Value:
        """The addresses of evenly spaced elements, by a stride in bytes that is known at run time."""
        assert index.linear is not None, "the elements are evenly spaced"
        found = self.moved(base, self._int64("multiply", index, stride), 1)
        start = self._int64("multiply", Value("i64", index.linear.base), stride)
        step = self._int64("multiply", integer(index.linear.step), stride)
        return replace(found, walk=LinearAddress(self.moved(base, start, 1).text, step.text))

    def _int64(self, op: str, left: Value, right: Value) -> Value:
        if op == "add" and right.literal == 0:
            return left
        return apply_op(self.b, op, [(left,), (right,)], INT64, INT64)[0]

    def _unravelled(self, param: str, position: Value, ndim: int) -> list[Value]:
        """Coordinates of a C-order position; the first takes what lies beyond the shape."""
        found: list[Value] = []
        for axis in range(ndim - 1, 0, -1):
            extent = self.around.arguments.number("raw_extent", param, axis)
            found.append(self._int64("modulo", position, extent))
            position = self._int64("quotient", position, extent)
        return [position, *reversed(found)]

    # --- queries -------------------------------------------------------------------------------------------------

    def _query(self, expr: ir.Query) -> Value:
        arguments, layout, raw = self.around.arguments, self.around.layout, bool(expr.param)
        ndim = dict(layout.raw)[expr.param][0] if raw else layout.ndim
        match expr.what:
            case "size":
                return arguments.number("raw_size" if raw else "size", expr.param)
            case "ndim":
                return integer(ndim)
            case "index":
                return self.around.space.index()
            case "shape" | "stride":
                kind: SlotKind = "raw_stride" if expr.what == "stride" else "raw_extent" if raw else "extent"
                return self._pick(expr, ndim, lambda axis: arguments.number(kind, expr.param, axis))
            case "coordinate":
                return self._pick(expr, ndim, self.around.space.coordinate)
        raise AssertionError(f"no quantity {expr.what}")

    def _pick(self, expr: ir.Query, ndim: int, along: Callable[[int], Value]) -> Value:
        """The quantity along the axis that the query names."""
        assert expr.axis is not None, f"{expr.what} needs an axis"
        axis = self.memo[expr.axis][0]
        if axis.literal is not None:
            assert 0 <= axis.literal < ndim, f"axis {axis.literal} of {ndim}"
            return along(axis.literal)
        found = integer(0)
        for number in range(ndim):
            found = self.b.select(self.b.compare("icmp eq", axis, integer(number, axis.type)), along(number), found)
        return found


def _first_lane(value: Value) -> Value:
    """The value of the first lane, where it is at hand."""
    return Value(value.type, value.linear.base) if value.varying and value.linear is not None else value


def element_name(array: str, index: Expr | None) -> str:
    """The variable that stands for one element of a local array whose indices are all constants."""
    assert index is None or isinstance(index, Const), "a local array in parts is indexed by constants"
    return f"{array}[{0 if index is None else int(index.value)}]"


def field_range(kind: Struct, name: str) -> tuple[int, int]:
    """First part and number of parts of a field."""
    start = 0
    for field_name, dtype in kind.fields:
        count = len(parts_of(dtype))
        if field_name == name:
            return start, count
        start += count
    raise AssertionError(f"struct {kind.name} has no field {name}")


def element_type(dtype: DType) -> str:
    """The LLVM type of one element of a local array in memory."""
    parts = parts_of(dtype)
    assert parts[0] is not None, "local arrays hold scalars"
    kind = memory_type(parts[0])
    return kind if len(parts) == 1 else f"[{len(parts)} x {kind}]"
