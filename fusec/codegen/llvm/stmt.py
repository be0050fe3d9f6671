"""Statements as LLVM instructions under lane masks.

Straight-line code runs for all lanes. Under a varying condition, writes that other lanes could see are blended and
memory accesses masked; a loop runs while any lane is in it. Where all lanes agree, branches are branches.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusec.base.dtypes import DType
from fusec.base.records import replace
from fusec.codegen.llvm import memory, routines
from fusec.codegen.llvm.atomic import AtomicUpdate
from fusec.codegen.llvm.divergence import FlowNode, FlowPlan, local_access
from fusec.codegen.llvm.expr import (
    WORTH_SKIPPING,
    ElementSpace,
    ExprEmitter,
    element_name,
    element_type,
    field_range,
)
from fusec.codegen.llvm.flow_frame import FlowFrame, OpenLoop, Stack, VarSlot
from fusec.codegen.llvm.memory import Lanes
from fusec.codegen.llvm.values import Linear, Operand, Value, integer, part_types, zero_of
from fusec.ir import loops as ir
from fusec.ir.expr import Expr, Struct, Type, type_of
from fusec.ir.walk import is_elementary


def zero(kind: Type) -> Operand:
    """The value a variable has before it is given one."""
    return tuple(Value(llvm, zero_of(llvm)) for llvm in part_types(kind))


class StmtEmitter(ExprEmitter):
    """Writes statements. A method returns whether control reaches the text that follows."""

    def program(
        self, plan: FlowPlan, known: dict[str, tuple[Type, Operand]], values: Sequence[Expr] = ()
    ) -> list[Operand]:
        """The body of a kernel for the current lanes, then the values that it leads to. known: variables by name."""
        self._open(FlowFrame(plan, self.b.label("end")), known)
        if self._block(plan.body):
            self.b.jump(self.frame.end)
        self.b.place(self.frame.end)
        self.memo = {}
        return [self.value(value) for value in values]

    def call(self, call: ir.Call, args: list[Operand]) -> Operand:
        """A call of a function that stays one, else its text."""
        if call.function not in self.around.kept:
            return self._written(call.function, args)
        b, lanes = self.b, self.lanes
        given = [part for arg in args for part in arg] + ([] if lanes.mask is None else [lanes.mask])
        traits = b.lanes, b.flags, lanes.mask is None, lanes.occupied
        key = (call.function, *traits, *map(routines.shape, given))
        routine: routines.Routine | None = b.routines.get(key)
        if routine is None:
            routine = b.routines[key] = self._routine(call.function, args)
        return routine.call(b, given)

    def _routine(self, name: str, args: list[Operand]) -> routines.Routine:
        """A function of its own, for arguments and lanes such as these."""
        b, arguments = self.b.beside(), self.around.arguments.within()
        params: list[Value] = []

        def received(value: Value) -> Value:
            text = f"%in{len(params)}"
            params.append(replace(routines.passed(value), text=text))
            return routines.received(value, text)

        inside = [tuple(map(received, arg)) for arg in args]
        mask = None if self.lanes.mask is None else received(self.lanes.mask)
        around = replace(self.around, builder=b, arguments=arguments, space=ElementSpace())
        result = StmtEmitter(around, Lanes(mask, self.lanes.occupied))._written(name, inside)
        return routines.define(b, name, params, arguments.prologue, result)

    def _written(self, name: str, args: list[Operand]) -> Operand:
        """The text of the function, with variables of its own."""
        analysis = self.around.analysis
        function = analysis.functions[name]
        plan = analysis.function(name, tuple(any(part.varying for part in arg) for arg in args))
        params = {param: (kind, arg) for (param, kind), arg in zip(function.params, args, strict=True)}
        saved = self.frame, self.memo, self.lanes
        flags = self.b.flags
        self.b.flags = "" if is_elementary(function) else flags
        self.memo = {}
        last = plan.body[-1].stmt if plan.body else None
        if isinstance(last, ir.Return) and _returns(plan.body) == 1:
            self._open(FlowFrame(plan, ""), params)
            self._block(plan.body[:-1])
            self.memo = {}
            result = () if last.value is None else self.value(last.value)
        else:
            result = self._call_with_exits(plan, params, function.result)
        self.frame, self.memo, self.lanes = saved
        self.b.flags = flags
        return result

    def _call_with_exits(self, plan: FlowPlan, params: dict[str, tuple[Type, Operand]], kind: Type | None) -> Operand:
        """A function that returns in several places: the result collects in slots, as zero where nothing returns."""
        nothing = () if kind is None else zero(kind)
        varies = plan.result_varies
        frame = FlowFrame(plan, self.b.label("end"), result=tuple(self._slot(part.type, varies) for part in nothing))
        self._open(frame, params)
        self.b.write_slots(frame.result, nothing, varies)
        if self._block(plan.body):
            self.b.jump(frame.end)
        self.b.place(frame.end)
        return self.b.read_slots(frame.result, [part.type for part in nothing], varies)

    def _open(self, frame: FlowFrame, params: dict[str, tuple[Type, Operand]]) -> None:
        """Enter a frame: its parameters, and the mask of lanes that have not returned."""
        self.frame = frame
        if frame.plan.parted:
            frame.live = self.b.alloca(self.b.vector_type("i1"))
            self._write_mask(frame.live, self.lanes.mask)
        for name, (kind, value) in params.items():
            self._declare_variable(name, kind, value)

    # --- masks ---------------------------------------------------------------------------------------------------

    def _write_mask(self, slot: str, mask: Value | None) -> None:
        self.b.write_slot(slot, mask or Value("i1", "true"), varying=True)

    def _read_mask(self, slot: str) -> Value:
        return self.b.read_slot(slot, "i1", varying=True)

    def _drop(self, slot: str) -> None:
        """Take the active lanes out of a mask."""
        mask = self.lanes.mask
        rest = (
            Value("i1", "false") if mask is None else self.b.binary("and", self._read_mask(slot), self.b.invert(mask))
        )
        self.b.write_slot(slot, rest, varying=True)

    def _remaining(self, before: Lanes) -> Lanes:
        """Those of some lanes that have taken no exit since."""
        loops = self.frame.loops
        slot = loops[-1].current if loops else self.frame.live
        assert slot, "lanes leave together where no mask is kept"
        return Lanes(self.b.both(before.mask, self._read_mask(slot)), occupied=False)

    # --- blocks --------------------------------------------------------------------------------------------------

    def _block(self, nodes: list[FlowNode]) -> bool:
        for node in nodes:
            self.memo = {}
            if not self._statement(node):
                return False
            if node.varying and isinstance(node.stmt, ir.Break | ir.Continue | ir.Return):
                return True  # no lane is left for what follows here
        return True

    def _statement(self, node: FlowNode) -> bool:
        match node.stmt:
            case ir.Declare(name=name, type=kind, value=value):
                given = zero(kind) if value is None else self.value(value)
                self._declare_variable(name, kind, given, blended=node.blended)
            case ir.DeclareArray():
                self._declare_array(node.stmt)
            case ir.Assign(name=name, value=value):
                self._assign(name, self.value(value), node.blended)
            case ir.SetField():
                self._set_field(node.stmt, node.blended)
            case ir.Store(pointer=pointer, value=value):
                self._store(node, pointer, value)
            case ir.Atomic(op=op, pointer=pointer, values=values, result=result):
                operands = [self.value(value) for value in values]
                address = self.scalar(pointer)
                dtype = type_of(values[0])
                assert isinstance(dtype, DType), "atomics work on scalars"
                old = AtomicUpdate(self.b, op, dtype, self.lanes).write(address, operands, bool(result))
                if result:
                    self._assign(result, old, node.blended)
            case ir.Shuffle(result=result, value=value, distance=distance):
                self._assign(result, tuple(self._shuffled(part, distance) for part in self.value(value)), node.blended)
            case ir.CallStatement(call=call, result=result):
                value_of_call = self.value(call)
                if result:
                    self._assign(result, value_of_call, node.blended)
            case ir.If():
                return self._if(node, node.stmt)
            case ir.While():
                return self._while(node, node.stmt)
            case ir.Break():
                return self._exit(node, self.frame.loops[-1].exit)
            case ir.Continue():
                return self._exit(node, self.frame.loops[-1].step)
            case ir.Return(value=value):
                return self._return(node, value)
        return True

    def _shuffled(self, part: Value, distance: int) -> Value:
        """What other lanes have; a vector is one group. Past its ends lanes keep their own."""
        b = self.b
        assert b.lanes == ir.GROUP, f"shuffles need vectors of {ir.GROUP} lanes"
        if not part.varying:
            return part
        if distance in (ir.FIRST, ir.LAST):
            lane = 0 if distance == ir.FIRST else ir.GROUP - 1
            return Value(part.type, b.let(f"extractelement {b.typed(part)}, i64 {lane}"))
        lanes = [lane + distance if 0 <= lane + distance < ir.GROUP else lane for lane in range(ir.GROUP)]
        if distance > ir.EXCHANGED:
            lanes = [lane ^ (distance - ir.EXCHANGED) for lane in range(ir.GROUP)]
        return Value(part.type, b.shuffle(b.typed(part), lanes), varying=True)

    # --- variables -----------------------------------------------------------------------------------------------

    def _set_field(self, stmt: ir.SetField, blended: bool) -> None:
        variable = self.frame.variables[stmt.name]
        assert isinstance(variable.type, Struct), "only structs have fields"
        start, count = field_range(variable.type, stmt.field)
        whole = self.read(variable)
        self._assign(stmt.name, whole[:start] + self.value(stmt.value) + whole[start + count :], blended)

    def _slot(self, llvm: str, varying: bool) -> str:
        return self.b.alloca(self.b.vector_type(llvm) if varying else llvm)

    def _declare_variable(self, name: str, kind: Type, value: Operand, blended: bool = False) -> None:
        """A variable with its first value; run again by a loop, it starts again."""
        plan, varying = self.frame.plan, name in self.frame.plan.varying
        if not blended and name not in plan.slotted:
            self.frame.variables[name] = VarSlot(kind, varying, value=value)
            return
        self._declare_slots(name, kind, varying)
        self._assign(name, value, blended)

    def _declare_slots(self, name: str, kind: Type, varying: bool) -> None:
        """Stack slots for a variable, zero at first."""
        slots = []
        for part in zero(kind):
            llvm = self.b.vector_type(part.type) if varying else part.type
            slots.append(self.b.alloca(llvm))
            first = "zeroinitializer" if varying else part.text
            self.b.allocas.append(f"  store {llvm} {first}, ptr {slots[-1]}")
        self.frame.variables[name] = VarSlot(kind, varying, tuple(slots))

    def _assign(self, name: str, value: Operand, blended: bool) -> None:
        variable = self.frame.variables[name]
        mask = self.lanes.mask
        if blended and mask is not None:
            value = self.b.select_parts(mask, value, self.read(variable))
        if not variable.slots:
            variable.value = value
            return
        self.b.write_slots(variable.slots, value, variable.varying)

    # --- local arrays and stores ---------------------------------------------------------------------------------

    def _declare_array(self, stmt: ir.DeclareArray) -> None:
        """A local array: a variable for every element if all indices are constants, else memory."""
        varying = stmt.name in self.frame.plan.varying
        given = [self.value(value) for value in stmt.values]
        if stmt.name in self.frame.plan.apart:
            for at in range(stmt.length):
                self._declare_slots(f"{stmt.name}[{at}]", stmt.element, varying)
                self._assign(f"{stmt.name}[{at}]", given[at] if at < len(given) else zero(stmt.element), blended=False)
            return
        lanes = self.b.lanes if varying else 1
        address = self.b.alloca(f"[{max(stmt.length, 1) * lanes} x {element_type(stmt.element)}]", 64)
        self.frame.stacks[stmt.name] = Stack(address, varying)
        if len(given) < stmt.length:
            nbytes = stmt.length * lanes * stmt.element.nbytes
            self.b.declare("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
            clear = f"call void @llvm.memset.p0.i64(ptr align 64 {address}, i8 0, i64 {nbytes}, i1 false)"
            if ir.is_shared(stmt):  # once for all blocks: they may hold anything, but nothing that LLVM calls undefined
                self.b.allocas.append(f"  {clear}")
            else:
                self.b.line(clear)
        linear = Linear(address, stmt.element.nbytes) if varying else None
        start = Value("ptr", "" if varying else address, varying, linear)
        for at, value in enumerate(given):
            place = self.moved(start, integer(at), stmt.element.nbytes * lanes)
            memory.store(self.b, place, value, stmt.element, Lanes())

    def _store(self, node: FlowNode, pointer: Expr, value: Expr) -> None:
        access = local_access(pointer)
        given = self.value(value)
        if access is not None and access[0] in self.frame.plan.apart:
            self._assign(element_name(*access), given, node.blended)
            return
        dtype = type_of(value)
        assert isinstance(dtype, DType), "memory holds scalars"
        lanes = self.lanes
        if isinstance(pointer, ir.Element | ir.Moved) and lanes.mask is None:
            if self.around.space.keeps(pointer, given):
                return
            lanes = replace(lanes, hint=self.around.space.hint(pointer.param, isinstance(pointer, ir.Moved)))
        memory.store(self.b, self.scalar(pointer), given, dtype, lanes)

    # --- branches ------------------------------------------------------------------------------------------------

    def _if(self, node: FlowNode, stmt: ir.If) -> bool:
        condition, before = self.scalar(stmt.condition), self.lanes
        reached = self._masked_if(node, condition) if condition.varying else self._uniform_if(node, condition)
        self.lanes = self._remaining(before) if node.leaves and reached else before
        return reached

    def _uniform_if(self, node: FlowNode, condition: Value) -> bool:
        before, done = self.lanes, self.b.label("endif")
        then, orelse = self.b.label("then"), self.b.label("else") if node.second else done
        reached = not node.second
        self.b.fork(condition, then, orelse)
        for label, nodes in ((then, node.first), (orelse, node.second)):
            if label == done:
                break
            self.b.place(label)
            self.lanes = before
            if self._block(nodes):
                self.b.jump(done)
                reached = True
        if reached:
            self.b.place(done)
        return reached

    def _masked_if(self, node: FlowNode, condition: Value) -> bool:
        before = self.lanes
        if node.first:
            self._arm(node.first, self.b.both(before.mask, condition))
        self.lanes = before
        if node.second:
            self._arm(node.second, self.b.both(before.mask, self.b.invert(condition)))
        return True

    def _arm(self, nodes: list[FlowNode], mask: Value | None) -> None:
        """Statements for some lanes, with a branch around them if they cost much."""
        if not self.around.costs.is_worth_skipping([node.stmt for node in nodes], WORTH_SKIPPING):
            self.lanes = Lanes(mask, occupied=False)
            self._block(nodes)
            return
        inside, after = self.b.label("some"), self.b.label("after")
        self.b.fork(self.b.any_lane(mask), inside, after)
        self.b.place(inside)
        self.lanes = Lanes(mask, occupied=True)
        if self._block(nodes):
            self.b.jump(after)
        self.b.place(after)

    # --- loops and exits -----------------------------------------------------------------------------------------

    def _while(self, node: FlowNode, stmt: ir.While) -> bool:
        b, before = self.b, self.lanes
        loop = OpenLoop(b.label("body"), b.label("step"), b.label("exit"))
        if node.varying:
            loop.alive = loop.current = b.alloca(b.vector_type("i1"))
            self._write_mask(loop.alive, before.mask)
        if node.skips:
            loop.current = b.alloca(b.vector_type("i1"))
        self.frame.loops.append(loop)
        test = b.label("test")
        b.jump(test if stmt.test_first else loop.body)
        b.place(test)
        self.lanes = self._inside(loop, before, occupied=False)
        self._test(node, stmt, loop)
        b.place(loop.body)
        self.lanes = self._inside(loop, before, occupied=stmt.test_first or before.occupied)
        if node.skips:
            self._write_mask(loop.current, self.lanes.mask)
        if self._block(node.first):
            b.jump(loop.step)
        b.place(loop.step)
        self.lanes = self._inside(loop, before, occupied=False)
        self._block(node.second)
        b.jump(test)
        self.frame.loops.pop()
        b.place(loop.exit)
        self.lanes = self._remaining(before) if node.leaves else before
        return True

    def _inside(self, loop: OpenLoop, before: Lanes, occupied: bool) -> Lanes:
        """The lanes in a loop."""
        return Lanes(self._read_mask(loop.alive), occupied) if loop.alive else before

    def _test(self, node: FlowNode, stmt: ir.While, loop: OpenLoop) -> None:
        self.memo = {}
        condition = self.scalar(stmt.condition)
        if node.varying and condition.varying:
            mask = self.b.both(self.lanes.mask, condition)
            self._write_mask(loop.alive, mask)
            condition = self.b.any_lane(mask)
        elif node.varying:
            condition = self.b.binary("and", condition, self.b.any_lane(self.lanes.mask))
        self.b.fork(condition, loop.body, loop.exit)

    def _exit(self, node: FlowNode, target: str) -> bool:
        """A break or continue."""
        if not node.varying:
            self.b.jump(target)
            return False
        loop = self.frame.loops[-1]
        self._drop(loop.current)
        if isinstance(node.stmt, ir.Break) and loop.alive != loop.current:
            self._drop(loop.alive)
        return True

    def _return(self, node: FlowNode, value: Expr | None) -> bool:
        given = () if value is None else self.value(value)
        varies, mask = self.frame.plan.result_varies, self.lanes.mask
        for slot, part in zip(self.frame.result, given, strict=True):
            if node.varying and mask is not None:
                part = self.b.select(mask, part, self.b.read_slot(slot, part.type, varies))
            self.b.write_slot(slot, part, varies)
        if not node.varying:
            self.b.jump(self.frame.end)
            return False
        loops = self.frame.loops
        for mask_slot in dict.fromkeys(
            [self.frame.live, *(slot for loop in loops for slot in (loop.current, loop.alive))]
        ):
            if mask_slot:
                self._drop(mask_slot)
        return True


def _returns(nodes: list[FlowNode]) -> int:
    """How many returns there are in a body."""
    return sum(isinstance(node.stmt, ir.Return) + _returns(node.first) + _returns(node.second) for node in nodes)
