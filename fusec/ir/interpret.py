"""The oracle: runs a program in NumPy, all elements of a block in lockstep under masks.

A masked-off lane computes what it may (ops are total) but never loads, stores or loops. Values are arrays of shape
(lanes,), or (1,) where all lanes agree. Raw accesses are checked: out of bounds is an InterpreterError. The threads of
a block program's blocks are lanes side by side; a barrier that some of a block miss is a BlockFault, and so are shared
elements that are read unwritten, or touched by two threads without a barrier between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from fusec.base.dtypes import DType
from fusec.base.records import dataclass, field
from fusec.ir import loops as ir
from fusec.ir.arithmetic import evaluate, look_up
from fusec.ir.atomics import update
from fusec.ir.expr import Apply, Const, Expr, Lookup, Pointer, Struct, Type, const
from fusec.ir.interpret_space import RunSpace, unravelled
from fusec.ir.memory import (
    ADDRESS,
    BlockFault,
    InterpreterError,
    LaneBuffer,
    Mask,
    Memory,
    SharedBuffer,
    addresses,
)
from fusec.ir.walk import is_harmless

Array = NDArray[Any]

BLOCK = 1 << 16  # lanes run at once


def interpret(
    program: ir.Program, arrays: Mapping[str, Array], scalars: Mapping[str, object], shape: tuple[int, ...]
) -> None:
    """Run the program for every element of the iteration space `shape`, writing outputs in place.

    arrays: by parameter name; those that are not raw broadcast to `shape`, or go on beyond it. scalars: converted to
    the parameter's dtype.
    Raises InterpreterError for arguments of a wrong dtype and for accesses out of bounds, BlockFault for block programs
    whose threads do not work together.
    """
    space = RunSpace(program, arrays, shape)
    values = {
        param.name: _lane(const(scalars[param.name], param.dtype))
        for param in program.params
        if isinstance(param, ir.ScalarParam)
    }
    functions = {function.name: function for function in program.functions}
    size, step = prod(shape), max(1, BLOCK // program.threads)
    for start in range(0, size, step):
        positions = np.repeat(np.arange(start, min(start + step, size), dtype=np.int64), program.threads)
        run = _Run(functions, space, positions)
        run.block(program.body, np.ones(len(positions), np.bool_), _Frame(dict(values)))


def call(function: ir.Function, args: Sequence[Array], callees: Sequence[ir.Function] = ()) -> Array:
    """The function's result for arrays of arguments, which broadcast; their dtypes must be those of its parameters."""
    assert function.result is not None, f"{function.name} returns nothing"
    broadcast = np.broadcast_arrays(*args) if args else [np.zeros(())]
    shape = broadcast[0].shape
    flat = [np.asarray(arg).reshape(-1) for arg in broadcast]
    for (name, expected), arg in zip(function.params, args, strict=True):
        if np.asarray(arg).dtype != _storage(expected):
            raise InterpreterError(f"{function.name}: {name} is {expected}, got {np.asarray(arg).dtype}")
    functions = {callee.name: callee for callee in callees}
    empty = ir.Program(function.name, (), ())
    result = np.zeros(prod(shape), _storage(function.result))
    for start in range(0, len(result), BLOCK):
        positions = np.arange(start, min(start + BLOCK, len(result)), dtype=np.int64)
        run = _Run(functions, RunSpace(empty, {}, shape), positions)
        part = [arg[start : start + BLOCK] for arg in flat] if args else []
        result[start : start + BLOCK] = run.call(function, part, np.ones(len(positions), np.bool_))
    return result.reshape(shape)


def two_place(name: str, functions: Sequence[ir.Function]) -> Callable[[Array, Array], Array]:
    """The function of that name and two parameters; a single operation takes no detour."""
    function = {each.name: each for each in functions}[name]
    op = single_op(function)
    if op is None:
        return lambda a, b: call(function, [a, b], functions)
    return lambda a, b: evaluate(op.op, [a, b], op.type)


def single_op(function: ir.Function) -> Apply | None:
    """The operation on its parameters, in their order, that is all that a function does; None if it does more."""
    match function.body:
        case (ir.Return(Apply(_, args) as value),):
            locals_ = tuple(ir.Local(name, kind) for name, kind in function.params)
            return value if args == locals_ else None
    return None


def _storage(kind: Type) -> np.dtype[Any]:
    """The NumPy dtype that holds a value of that type."""
    match kind:
        case DType():
            return kind.numpy
        case Struct():
            return np.dtype([(name, dtype.numpy) for name, dtype in kind.fields])
        case Pointer():
            return ADDRESS
        case _:
            assert_never(kind)


def whole_value(parts: Sequence[Array], kind: Type) -> Array:
    """The value with these parts: a structured array for a struct."""
    if not isinstance(kind, Struct):
        return parts[0]
    made = np.zeros(parts[0].shape, _storage(kind))
    for (name, _), part in zip(kind.fields, parts, strict=True):
        made[name] = part
    return made


def _lane(value: Const) -> Array:
    """A constant as one lane."""
    return np.asarray(value.value).reshape(1)


def _wide(value: Array, mask: Mask) -> Array:
    """The value with one entry for every lane."""
    return np.broadcast_to(value, mask.shape)


@dataclass
class _Frame:
    """One activation of a function: its locals, local arrays, and what lanes have returned."""

    locals: dict[str, Array]
    arrays: dict[str, int] = field(default_factory=dict)
    result: Array | None = None
    # values of the current statement's expressions, with the lanes for which they are known
    memo: dict[Expr, tuple[Array, Mask]] = field(default_factory=dict)


@dataclass
class _Loop:
    """Lanes that have left the innermost loop, or the rest of its current round."""

    broken: Mask
    continued: Mask


class _Run:
    """Some lanes on their way through a program, all of the blocks of a block program that they belong to."""

    def __init__(self, functions: Mapping[str, ir.Function], space: RunSpace, positions: NDArray[np.int64]) -> None:
        self.functions = functions
        self.space = space
        self.positions = positions
        self.memory = Memory()
        self.numbers = {name: self.memory.add(buffer) for name, buffer in space.buffers.items()}
        self.coordinates = unravelled(positions, space.shape)
        self.constants: dict[Const, Array] = {}
        self.harmless: dict[Expr, bool] = {}
        self.line = 0

    # --- statements: each takes the lanes that reach it and returns those that go on to the next -----------------

    def block(self, body: Sequence[ir.Stmt], mask: Mask, frame: _Frame, loop: _Loop | None = None) -> Mask:
        """Run statements in order for the active lanes."""
        for stmt in body:
            if not mask.any():
                break
            self.line = stmt.line
            frame.memo.clear()
            try:
                mask = self._statement(stmt, mask, frame, loop)
            except BlockFault as fault:
                fault.line = fault.line or stmt.line
                raise
        return mask

    def _statement(self, stmt: ir.Stmt, mask: Mask, frame: _Frame, loop: _Loop | None) -> Mask:
        match stmt:
            case ir.If(condition, then, orelse):
                chosen = _wide(self.value(condition, mask, frame), mask)
                passed = self.block(then, mask & chosen, frame, loop)
                return passed | self.block(orelse, mask & ~chosen, frame, loop)
            case ir.While():
                return self._while(stmt, mask, frame)
            case ir.Break():
                assert loop is not None, "break outside a loop"
                loop.broken |= mask
                return np.zeros_like(mask)
            case ir.Continue():
                assert loop is not None, "continue outside a loop"
                loop.continued |= mask
                return np.zeros_like(mask)
            case ir.Return(value):
                if value is not None:
                    found = self.value(value, mask, frame)
                    before = np.zeros(1, found.dtype) if frame.result is None else frame.result
                    frame.result = found if mask.all() else np.where(mask, found, before)
                return np.zeros_like(mask)
            case _:
                self._effect(stmt, mask, frame)
                return mask

    def _while(self, stmt: ir.While, mask: Mask, frame: _Frame) -> Mask:
        left = np.zeros_like(mask)
        tested = not stmt.test_first
        while mask.any():
            if not tested:
                frame.memo.clear()
                holds = _wide(self.value(stmt.condition, mask, frame), mask)
                left |= mask & ~holds
                mask = mask & holds
            tested = False
            loop = _Loop(np.zeros_like(mask), np.zeros_like(mask))
            mask = self.block(stmt.body, mask, frame, loop) | loop.continued
            left |= loop.broken
            mask = self.block(stmt.step, mask, frame)
        return left

    def _effect(self, stmt: ir.Stmt, mask: Mask, frame: _Frame) -> None:
        """A statement after which every lane goes on."""
        match stmt:
            case ir.Declare(name, kind, value):
                initial = np.zeros(1, _storage(kind)) if value is None else self.value(value, mask, frame)
                self._assign(name, initial, mask, frame)
            case ir.DeclareArray():
                self._declare_array(stmt, mask, frame)
            case ir.Assign(name, value):
                self._assign(name, self.value(value, mask, frame), mask, frame)
            case ir.SetField(name, part, value):
                changed = np.array(_wide(frame.locals[name], mask))
                changed[part] = np.where(mask, self.value(value, mask, frame), changed[part])
                frame.locals[name] = changed
            case ir.Store(pointer, value):
                values = self.value(value, mask, frame)
                lanes = np.flatnonzero(mask)
                self.memory.store(self._address(pointer, mask, frame), lanes, _wide(values, mask)[lanes])
            case ir.Atomic(op, pointer, operands, result):
                values_of = [_wide(self.value(operand, mask, frame), mask) for operand in operands]
                old = update(self.memory, op, self._address(pointer, mask, frame), values_of, mask)
                if result:
                    self._assign(result, old, mask, frame)
            case ir.Shuffle(result, value, distance):
                self._assign(result, self._shuffled(value, distance, mask, frame), mask, frame)
            case ir.Barrier():
                self._meet(mask)
            case ir.CallStatement(called, result):
                found = self.value(called, mask, frame)
                if result:
                    self._assign(result, found, mask, frame)
            case _:
                raise AssertionError(f"unknown statement {stmt}")

    def _shuffled(self, value: Expr, distance: int, mask: Mask, frame: _Frame) -> Array:
        """What other positions of the groups have; those past the end of a group get a value of their own."""
        groups = self.positions // ir.GROUP
        reached = np.isin(groups, groups[mask])
        if not np.array_equal(mask, reached):
            raise InterpreterError(f"line {self.line}: only a part of a group comes to a shuffle")
        found = _wide(self.value(value, mask, frame), mask)
        at = np.arange(len(mask))
        other = at + distance
        if distance in (ir.FIRST, ir.LAST):
            other = at - at % ir.GROUP + (ir.GROUP - 1 if distance == ir.LAST else 0)
        elif distance > ir.EXCHANGED:
            other = at ^ (distance - ir.EXCHANGED)
        inside = (other >= 0) & (other < len(mask)) & (groups[np.clip(other, 0, len(mask) - 1)] == groups)
        return found[np.where(inside, other, at)]

    def _meet(self, mask: Mask) -> None:
        """Each block comes with all its threads or none."""
        by_block = mask.reshape(-1, self.space.program.threads)
        blocks: Mask = np.logical_or.reduce(by_block, axis=1)
        if (blocks & ~np.logical_and.reduce(by_block, axis=1)).any():
            raise BlockFault("only a part of the threads of a block come to a barrier")
        for buffer in self.memory.buffers:
            if isinstance(buffer, SharedBuffer):
                buffer.meet(blocks)

    def _assign(self, name: str, value: Array, mask: Mask, frame: _Frame) -> None:
        """Values are never written in place, so lanes may share them; a fresh variable needs no blending."""
        old = frame.locals.get(name)
        frame.locals[name] = value if old is None or mask.all() else np.where(mask, value, old)

    def _declare_array(self, stmt: ir.DeclareArray, mask: Mask, frame: _Frame) -> None:
        """A declaration met again, in a loop, starts a local array afresh."""
        if ir.is_shared(stmt):
            if stmt.name not in frame.arrays:
                threads = self.space.program.threads
                shared = SharedBuffer(stmt.name, self.memory, len(mask) // threads, threads, stmt.length, stmt.element)
                frame.arrays[stmt.name] = self.memory.add(shared)
            return
        values = [_wide(self.value(value, mask, frame), mask) for value in stmt.values]
        if stmt.name not in frame.arrays:
            buffer = LaneBuffer(stmt.name, len(mask), stmt.length, stmt.element)
            frame.arrays[stmt.name] = self.memory.add(buffer)
        rows = self.memory.buffers[frame.arrays[stmt.name]]
        assert isinstance(rows, LaneBuffer), stmt.name
        rows.rows[mask] = 0
        for position, value in enumerate(values):
            rows.rows[mask, position] = value[mask]

    # --- expressions ---------------------------------------------------------------------------------------------

    def value(self, expr: Expr, mask: Mask, frame: _Frame) -> Array:
        """The expression's value, correct in the active lanes; each part is evaluated once for every lane."""
        match expr:
            case Const():
                if expr not in self.constants:
                    self.constants[expr] = _lane(expr)
                return self.constants[expr]
            case ir.Local(name):
                return frame.locals[name]
        if expr not in frame.memo:
            known = self._compute(expr, mask, frame)
            frame.memo[expr] = (known, mask)
            return known
        known, lanes = frame.memo[expr]
        missing = mask & ~lanes
        if lanes is not mask and missing.any():
            known = np.where(missing, self._compute(expr, missing, frame), known)
            frame.memo[expr] = (known, lanes | mask)
        return known

    def _compute(self, expr: Expr, mask: Mask, frame: _Frame) -> Array:
        match expr:
            case Apply(op, args, target):
                if op in ("where", "logical_and", "logical_or") and not is_harmless(expr, self.harmless):
                    return self._on_demand(expr, mask, frame)
                return evaluate(op, [self.value(arg, mask, frame) for arg in args], target)
            case Lookup(entries, index):
                return look_up(entries, self.value(index, mask, frame))
            case ir.Load(pointer, dtype):
                lanes = np.flatnonzero(mask)
                loaded = np.zeros(mask.shape, dtype.numpy)
                loaded[lanes] = self.memory.load(self._address(pointer, mask, frame), lanes, dtype)
                return loaded
            case ir.Call(name, args):
                if name not in self.functions:
                    raise InterpreterError(f"function {name} is missing")
                values = [self.value(arg, mask, frame) for arg in args]
                return self.call(self.functions[name], values, mask)
            case ir.Query():
                return self._query(expr, mask, frame)
            case ir.Field(value, name):
                return np.asarray(self.value(value, mask, frame)[name])
            case ir.Make(fields, kind):
                return whole_value(np.broadcast_arrays(*(self.value(part, mask, frame) for part in fields)), kind)
            case ir.Element() | ir.At() | ir.LocalArray() | ir.Offset() | ir.Moved():
                return self._pointer(expr, mask, frame)
            case _:
                raise AssertionError(f"unknown expression {expr}")

    def _on_demand(self, expr: Apply, mask: Mask, frame: _Frame) -> Array:
        """`where` and the logical ops evaluate an operand only in the lanes that need it."""
        first = _wide(self.value(expr.args[0], mask, frame), mask)
        if expr.op == "where":
            then = self._guarded(expr.args[1], mask & first, frame)
            orelse = self._guarded(expr.args[2], mask & ~first, frame)
            return evaluate("where", [first, then, orelse], expr.type)
        wanted = first if expr.op == "logical_and" else ~first
        second = self._guarded(expr.args[1], mask & wanted, frame)
        return evaluate(expr.op, [first, second], expr.type)

    def _guarded(self, expr: Expr, mask: Mask, frame: _Frame) -> Array:
        """The value if any lane wants it, else zero."""
        if mask.any():
            return self.value(expr, mask, frame)
        return np.zeros(1, _storage(expr.type))  # type: ignore[attr-defined]

    def call(self, function: ir.Function, args: Sequence[Array], mask: Mask) -> Array:
        """Run a function for the active lanes; where it ends without returning a value, that is zero."""
        frame = _Frame({name: arg for (name, _), arg in zip(function.params, args, strict=True)})
        mark, line = len(self.memory.buffers), self.line
        self.block(function.body, mask, frame)
        del self.memory.buffers[mark:]
        self.line = line
        if frame.result is None:
            return np.zeros(1, _storage(function.result) if function.result is not None else np.bool_)
        return frame.result

    # --- addresses and queries -----------------------------------------------------------------------------------

    def _pointer(
        self, expr: ir.Element | ir.At | ir.LocalArray | ir.Offset | ir.Moved, mask: Mask, frame: _Frame
    ) -> Array:
        match expr:
            case ir.Element(param):
                steps = self.space.steps[param]
                offsets = np.full(mask.shape, self.space.buffers[param].start, np.int64)
                for coordinate, step in zip(self.coordinates, steps, strict=True):
                    offsets += coordinate * step
                return addresses(self.numbers[param], offsets)
            case ir.Moved(param, axes, distances, kind):
                moved = np.array(self._pointer(ir.Element(param, kind), mask, frame))
                with np.errstate(all="ignore"):
                    for axis, distance in zip(axes, distances, strict=True):
                        moved["offset"] += self.value(distance, mask, frame) * np.int64(self.space.steps[param][axis])
                return moved
            case ir.At(param, index):
                array = self.space.arrays[param]
                values = [self.value(part, mask, frame) for part in index]
                coordinates = unravelled(values[0], array.shape) if len(values) == 1 else values
                offset: Array = np.full(1, self.space.buffers[param].start, np.int64)
                with np.errstate(all="ignore"):
                    for coordinate, stride in zip(coordinates, array.strides, strict=True):
                        offset = offset + coordinate * np.int64(stride)
                return addresses(self.numbers[param], offset)
            case ir.LocalArray(name):
                return addresses(frame.arrays[name], np.zeros(1, np.int64))
            case ir.Offset(pointer, distance, kind):
                moved = np.array(_wide(self.value(pointer, mask, frame), mask))
                with np.errstate(all="ignore"):
                    moved["offset"] += self.value(distance, mask, frame) * np.int64(kind.element.nbytes)
                return moved
            case _:
                assert_never(expr)

    def _address(self, pointer: Expr, mask: Mask, frame: _Frame) -> Array:
        """An address about to be followed: an index into a raw array must lie within its shape."""
        found = _wide(self.value(pointer, mask, frame), mask)
        if isinstance(pointer, ir.At):
            shape = self.space.arrays[pointer.param].shape
            limits = (prod(shape),) if len(pointer.index) == 1 else shape
            for axis, (part, limit) in enumerate(zip(pointer.index, limits, strict=True)):
                index = _wide(self.value(part, mask, frame), mask)
                outside = mask & ((index < 0) | (index >= limit))
                if outside.any():
                    lane = int(np.argmax(outside))
                    where = f"index {axis}" if len(limits) > 1 else "index"
                    raise InterpreterError(
                        f"line {self.line}: {where} {index[lane]} of raw array {pointer.param} is outside its "
                        f"{limit} elements, at element {self.positions[lane]} of the iteration space"
                    )
        return found

    def _query(self, expr: ir.Query, mask: Mask, frame: _Frame) -> Array:
        extents = self.space.extents(expr.param)
        match expr.what:
            case "size":
                return np.array([prod(extents)])
            case "ndim":
                return np.array([len(extents)])
            case "index":
                return self.positions
            case "shape":
                return self._pick(expr, [np.int64(extent) for extent in extents], mask, frame)
            case "stride":
                strides = self.space.arrays[expr.param].strides
                return self._pick(expr, [np.int64(stride) for stride in strides], mask, frame)
            case "coordinate":
                return self._pick(expr, self.coordinates, mask, frame)
            case "thread":
                block = self.space.program.block
                return self._pick(expr, unravelled(np.arange(len(mask)) % prod(block), block), mask, frame)
            case _:
                assert_never(expr.what)

    def _pick(self, expr: ir.Query, choices: Sequence[Array | np.int64], mask: Mask, frame: _Frame) -> Array:
        """The choice for the axis of each lane."""
        assert expr.axis is not None, f"{expr.what} needs an axis"
        axis = _wide(self.value(expr.axis, mask, frame), mask)
        if (mask & ((axis < 0) | (axis >= len(choices)))).any():
            raise InterpreterError(
                f"line {self.line}: an axis of {expr.param or 'the space'} is outside its {len(choices)} axes"
            )
        result = np.zeros(mask.shape, np.int64)
        for number, choice in enumerate(choices):
            result = np.where(axis == number, choice, result)
        return result
