"""The verifier of both IRs: a violation is a bug of an earlier pass or front end, and the message says where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fusec.base.dtypes import BOOL, COMPUTE_FLOATS, INT64, STORAGE_FLOATS, DType, real_type
from fusec.base.kernel_abi import MAX_BLOCK
from fusec.base.ops import TABLE, result_type
from fusec.base.records import dataclass, field
from fusec.ir import loops as ir
from fusec.ir.expr import Apply, Const, Expr, Lookup, Pointer, Struct, Type, scalar_type, type_of
from fusec.ir.graph import Count, Input, KernelGraph, Neighbour, Position, Reduce, Spread, Taken, Within
from fusec.ir.walk import inner_first, operands

EXPRESSION_DEPTH = 200
STATEMENT_DEPTH = 64
TABLE_LENGTH = 4096  # entries of a constant table
STORAGE_OPS = frozenset({"convert", "bitcast", "where"})  # all that narrow floats take part in,
NEIGHBOURS = frozenset({"nextafter", "spacing"})  # but for these, until they are expanded: they ask for neighbours


def verify(program: ir.Program, primitive: bool = False) -> None:
    """Raise AssertionError naming the first statement that breaks a rule of the IR.

    primitive: also refuse ops that `fusec.math` defines and complex arithmetic, which no code generator knows.
    """
    names = [param.name for param in program.params]
    _require(len(set(names)) == len(names), f"two parameters of {program.name} share a name")
    _check_params(program.params)
    arrays = {param.name: param for param in program.arrays}
    functions: dict[str, ir.Function] = {}
    for function in program.functions:
        _require(function.name not in functions, f"two functions are called {function.name}")
        scope = _Scope(function.name, {}, functions, dict(function.params), function.result, primitive=primitive)
        _require(len(scope.locals) == len(function.params), f"two parameters of {function.name} share a name")
        scope.block(function.body, 0, False)
        functions[function.name] = function
    scalars: dict[str, Type] = {
        param.name: param.dtype for param in program.params if isinstance(param, ir.ScalarParam)
    }
    kernel = _Scope(program.name, arrays, functions, scalars, None, primitive=primitive, extents=program.block)
    each, left = divmod(program.threads, program.cluster)
    _require(min(program.block, default=1) > 0 and each <= MAX_BLOCK, f"a block of {program.block}")
    _require(left == 0, f"{program.cluster} blocks have {program.block}")
    kernel.block(program.body, 0, False)


def verify_graph(graph: KernelGraph) -> None:
    """Raise AssertionError unless outputs are well-typed scalar expressions over the graph's own inputs."""
    names = [value.name for value in graph.inputs]
    _require(len(set(names)) == len(names), f"two inputs of {graph.name} share a name")
    outputs = [name for name, _ in graph.outputs]
    _require(len(set(outputs)) == len(outputs), f"two outputs of {graph.name} share a name")
    checked: set[Expr] = set()
    for name, value in graph.outputs:
        try:
            for expr in inner_first([value], checked):
                _check_graph_node(expr, frozenset(graph.inputs))
                checked.add(expr)
        except AssertionError as error:
            raise AssertionError(f"output {name} of {graph.name}: {error}") from None


def _check_graph_node(value: Expr, inputs: frozenset[Input]) -> None:
    """Check a node whose operands are good."""
    match value:
        case Const():
            _check_const(value)
        case Apply():
            _check_apply(value, primitive=False)
        case Lookup():
            _check_lookup(value)
        case Spread(_, operand, dtype):
            _require(real_type(scalar_type(operand)) == dtype, f"a {dtype} spread of {type_of(operand)}")
        case Reduce(op, operand, dtype):
            _require(type_of(operand) == dtype, f"a {dtype} reduced from {type_of(operand)}")
            _require(op in TABLE and TABLE[op].arity == 2, f"{op} does not combine two operands")
        case Count():
            _require(value.type == INT64, "a count is int64")
        case Position() | Neighbour() | Within():
            _require(value.type == INT64, "a position is int64")
        case Taken(array, outside, index, dtype):
            _require(array in inputs, "elements are taken from an input")
            _require(type_of(array) == dtype == type_of(outside), f"a {dtype} taken from {type_of(array)}")
            _require(all(type_of(each) == INT64 for each in index), "indices are int64")
        case Input():
            _require(value in inputs, f"{value.name} is not an input")
        case _:
            raise AssertionError(f"{type(value).__name__} is no node of a graph")


def _check_params(params: Sequence[ir.Param]) -> None:
    """The marks of a parameter must not contradict each other."""
    for param in params:
        if isinstance(param, ir.ArrayParam):
            _require(param.raw or param.ndim == 0, f"{param.name} is not raw, so its axes belong to the space")
            _require(param.read or param.written, f"{param.name} is neither read nor written")


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise AssertionError(reason)


def _check_const(value: Const) -> None:
    _require(0 <= value.bits < 1 << value.type.bits, f"constant {value.bits:#x} does not fit {value.type}")
    _require(value.type != BOOL or value.bits < 2, "a bool constant is 0 or 1")


def _check_apply(value: Apply, primitive: bool) -> None:
    """Arity, kinds, equal operand dtypes and the result rule, by the op's row."""
    op = TABLE.get(value.op)
    if op is None:
        raise AssertionError(f"unknown op {value.op}")
    _require(len(value.args) == op.arity, f"{op.name} takes {op.arity} operands, got {len(value.args)}")
    types = [_scalar(arg) for arg in value.args]
    shown = ", ".join(map(repr, types))
    if op.name == "where":
        _require(types[0] == BOOL and types[1] == types[2], f"where of ({shown})")
    elif op.second is not None:
        _require(types[0].kind in op.accepts and types[1].kind in op.second, f"{op.name} of ({shown})")
    else:
        _require(len(set(types)) == 1 and types[0].kind in op.accepts, f"{op.name} of ({shown})")
    if op.name not in STORAGE_OPS | NEIGHBOURS:
        _require(not set(types) & set(STORAGE_FLOATS), f"{op.name} of the storage type ({shown})")
    _require(result_type(op, tuple(types), value.type) == value.type, f"{op.name} of ({shown}) is not {value.type}")
    if op.name == "bitcast":
        _require(value.type.bits == types[0].bits and not value.type.is_complex, f"bitcast of {shown} to {value.type}")
    if primitive:
        _require(op.primitive, f"op {op.name} is not primitive")
        simple = op.name in ("complex", "real", "imag", "where")
        involved = value.type.is_complex or types[0].is_complex
        _require(simple or not involved, f"complex {op.name} is not primitive")


def _check_lookup(value: Lookup) -> None:
    """The entries must be literals that every target can put into an initialiser."""
    count, dtype = len(value.values), value.type
    _require(1 < count <= TABLE_LENGTH and count.bit_count() == 1, f"a table of {count} entries")
    _require(dtype in COMPUTE_FLOATS or (dtype.is_integer and dtype.bits >= 32), f"a table of {dtype}")
    _require(_scalar(value.index).is_integer, f"a table indexed by {type_of(value.index)}")
    for entry in value.values:
        _require(isinstance(entry, Const) and entry.type == dtype, f"{entry} in a table of {dtype}")
        if dtype.is_integer:
            continue
        exponent = entry.bits >> dtype.mantissa & (1 << dtype.bits - 1 - dtype.mantissa) - 1
        normal = 0 < exponent < (1 << dtype.bits - 1 - dtype.mantissa) - 1
        _require(normal or entry.bits == 0, f"{entry.value} in a table")


def _scalar(value: Expr) -> DType:
    found = type_of(value)
    if not isinstance(found, DType):
        raise AssertionError(f"expected a scalar, got {found}")
    return found


def _fits(found: Type, wanted: Type) -> bool:
    """Equal types, or a pointer that may be written given where one that may not is wanted."""
    if isinstance(found, Pointer) and isinstance(wanted, Pointer) and wanted.const:
        return (found.element, found.space) == (wanted.element, wanted.space)
    return found == wanted


@dataclass
class _Scope:
    """The names visible while a function, or the kernel, is checked."""

    owner: str
    params: Mapping[str, ir.ArrayParam]
    functions: Mapping[str, ir.Function]
    locals: dict[str, Type]
    result: Type | None
    primitive: bool
    extents: tuple[int, ...] = ()  # of the blocks, in a block program
    arrays: dict[str, Pointer] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)  # all names used so far
    depths: dict[Expr, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.taken.update(self.locals)

    # --- statements ----------------------------------------------------------------------------------------------

    def block(self, body: Sequence[ir.Stmt], depth: int, in_loop: bool) -> None:
        """Check statements in order; names declared inside end with the block."""
        outer_locals, outer_arrays = dict(self.locals), dict(self.arrays)
        for number, stmt in enumerate(body):
            try:
                _require(depth <= STATEMENT_DEPTH, f"statements are nested more than {STATEMENT_DEPTH} deep")
                self._own(stmt, in_loop)
            except AssertionError as error:
                place = f"{self.owner}, statement {number} at depth {depth} ({type(stmt).__name__}, line {stmt.line})"
                raise AssertionError(f"{place}: {error}") from None
            match stmt:
                case ir.If(_, then, orelse):
                    self.block(then, depth + 1, in_loop)
                    self.block(orelse, depth + 1, in_loop)
                case ir.While(_, inner, step):
                    self.block(inner, depth + 1, True)
                    self.block(step, depth + 1, False)
        self.locals, self.arrays = outer_locals, outer_arrays
        self.depths = {}  # an expression checked in this block may name what is out of scope now

    def _own(self, stmt: ir.Stmt, in_loop: bool) -> None:
        """Check a statement without those nested in it, and enter what it declares."""
        for operand in operands(stmt):
            self.expression(operand)
        match stmt:
            case ir.Declare(name, kind, value):
                self._enter(name)
                self.locals[name] = kind
                _require(value is None or _fits(type_of(value), kind), f"{name} is {kind}, its value is not")
            case ir.DeclareArray(name, element, length, values):
                self._enter(name)
                self.arrays[name] = Pointer(element, stmt.space)
                _require(stmt.space != "global", f"{name} is in global memory")
                _require(stmt.space == "local" or not values, f"the shared array {name} has values")
                _require(length >= max(len(values), 1), f"{len(values)} values for {length} elements of {name}")
                _require(all(type_of(part) == element for part in values), f"a value of {name} is not {element}")
            case ir.Assign(name, value):
                self._receive(name, type_of(value))
            case ir.SetField(name, part, value):
                struct = self.locals.get(name)
                known = isinstance(struct, Struct) and dict(struct.fields).get(part) == type_of(value)
                _require(known, f"{name} is {struct}, which has no {type_of(value)} {part}")
            case ir.Store(pointer, value):
                _require(self._target(pointer) == type_of(value), f"a {type_of(value)} stored to {type_of(pointer)}")
            case ir.Shuffle(result, value, distance):
                self._receive(result, type_of(value))
                _require(isinstance(type_of(value), DType), "a shuffle takes a scalar")
                _require(
                    abs(distance) in (*ir.POWERS, ir.FIRST, ir.LAST) or distance - ir.EXCHANGED in ir.POWERS,
                    f"a shuffle over {distance} positions",
                )
            case ir.Atomic():
                self._atomic(stmt)
            case ir.AtomicLoad(result, pointer):
                element = self._target(pointer)
                _require(element.is_integer and element.bits >= 32, f"an atomic load of {element}")
                self._receive(result, element)
            case ir.AtomicStore(pointer, value):
                element = self._target(pointer)
                _require(element.is_integer and element.bits >= 32, f"an atomic store of {element}")
                _require(element == type_of(value), f"a {type_of(value)} stored to {type_of(pointer)}")
            case ir.CallStatement(call, result):
                if result:
                    self._receive(result, call.type)
            case ir.If(condition) | ir.While(condition):
                _require(type_of(condition) == BOOL, f"the condition is {type_of(condition)}")
            case ir.Barrier():
                _require(bool(self.extents), "no block program")
            case ir.Break() | ir.Continue():
                _require(in_loop, "outside a loop")
            case ir.Return(returned):
                found = None if returned is None else type_of(returned)
                _require(found == self.result, f"returns {found}, declared {self.result}")
            case _:
                raise AssertionError("unknown statement")

    def _enter(self, name: str) -> None:
        _require(name not in self.taken, f"{name} is declared twice")
        _require(name not in self.functions, f"{name} is the name of a function")
        self.taken.add(name)

    def _receive(self, name: str, found: Type) -> None:
        _require(name in self.locals, f"{name} is not declared")
        _require(_fits(found, self.locals[name]), f"{name} is {self.locals[name]}, its new value is {found}")

    def _target(self, pointer: Expr) -> DType:
        """The dtype stored through a pointer; argument arrays must be outputs."""
        kind = type_of(pointer)
        _require(isinstance(kind, Pointer), f"{kind} is no pointer")
        assert isinstance(kind, Pointer)
        _require(not kind.const, f"{kind} is constant")
        if isinstance(pointer, ir.Element | ir.At | ir.Moved):
            _require(self.params[pointer.param].written, f"{pointer.param} is no output")
        return kind.element

    def _atomic(self, stmt: ir.Atomic) -> None:
        element = self._target(stmt.pointer)
        wanted = 2 if stmt.op == "compare_exchange" else 1
        _require(len(stmt.values) == wanted, f"{stmt.op} takes {wanted} operands")
        _require(all(type_of(value) == element for value in stmt.values), f"an operand of {stmt.op} is not {element}")
        _require(stmt.op not in ("and", "or", "xor") or element.is_integer, f"atomic {stmt.op} of {element}")
        if stmt.result:
            self._receive(stmt.result, element)

    # --- expressions ---------------------------------------------------------------------------------------------

    def expression(self, root: Expr) -> None:
        """Check an expression."""
        for value in inner_first([root], self.depths):
            self.depths[value] = 1 + max([self.depths[child] for child in value.children], default=0)
            _require(self.depths[value] <= EXPRESSION_DEPTH, f"an expression is more than {EXPRESSION_DEPTH} deep")
            self._node(value)

    def _node(self, value: Expr) -> None:
        """Check a node whose operands are good."""
        match value:
            case Const():
                _check_const(value)
            case Apply():
                _check_apply(value, self.primitive)
            case Lookup():
                _check_lookup(value)
            case ir.Local(name, kind):
                _require(self.locals.get(name) == kind, f"{name} read as {kind}, declared {self.locals.get(name)}")
            case ir.Element(param, kind) | ir.At(param, _, kind):
                self._address(param, kind, isinstance(value, ir.At))
                if isinstance(value, ir.At):
                    _require(all(type_of(part) == INT64 for part in value.index), f"an index of {param} is not int64")
                    _require(len(value.index) in (1, self.params[param].ndim), f"{param} has other axes")
            case ir.Moved(param, axes, distances, kind):
                self._address(param, kind, False)
                _require(len(set(axes)) == len(axes) == len(distances), f"{param} moved along {axes}")
                _require(min(axes, default=0) >= 0, f"{param} moved along {axes}")
                _require(all(type_of(each) == INT64 for each in distances), f"a distance of {param} is not int64")
            case ir.LocalArray(name, kind):
                _require(self.arrays.get(name) == kind, f"{name} is no such array")
            case ir.Offset(pointer, distance, kind):
                _require(type_of(distance) == INT64, "a distance is not int64")
                _require(type_of(pointer) == kind, f"{type_of(pointer)} moved becomes {kind}")
            case ir.Load(pointer, dtype):
                kind = type_of(pointer)
                _require(isinstance(kind, Pointer) and kind.element == dtype, f"a {dtype} loaded from {kind}")
            case ir.Query():
                self._query(value)
            case ir.Call():
                self._call(value)
            case ir.Field(struct, name, dtype):
                kind = type_of(struct)
                _require(isinstance(kind, Struct) and dict(kind.fields).get(name) == dtype, f"{kind} has no {name}")
            case ir.Make(parts, kind):
                _require([type_of(part) for part in parts] == [d for _, d in kind.fields], f"wrong values for {kind}")
            case _:
                raise AssertionError(f"{type(value).__name__} is no node of a program")

    def _address(self, param: str, kind: Pointer, raw: bool) -> None:
        _require(param in self.params, f"{param} is no array parameter here")
        found = self.params[param]
        _require(found.raw == raw, f"{param} is {'' if found.raw else 'not '}raw")
        _require(kind.element == found.dtype and kind.space == "global", f"{param} addressed as {kind}")

    def _query(self, value: ir.Query) -> None:
        _require(value.type == INT64, "a query is int64")
        _require((value.axis is None) == (value.what in ("size", "ndim", "index")), f"axis of {value.what}")
        _require(value.axis is None or type_of(value.axis) == INT64, "an axis is not int64")
        if value.param:
            _require(value.param in self.params and self.params[value.param].raw, f"{value.param} is no raw array")
            _require(
                value.what not in ("index", "coordinate", "thread"), f"{value.what} belongs to the iteration space"
            )
        elif value.what == "thread":
            known = isinstance(value.axis, Const) and 0 <= int(value.axis.value) < len(self.extents)
            _require(known, f"the position in a block of {len(self.extents)} axes")
        else:
            _require(value.what != "stride", "the iteration space has no strides")

    def _call(self, value: ir.Call) -> None:
        """Only functions before this one are known, so none can recurse."""
        function = self.functions.get(value.function)
        if function is None:
            raise AssertionError(f"function {value.function} is not defined before its use")
        expected = [kind for _, kind in function.params]
        found = [type_of(arg) for arg in value.args]
        good = len(found) == len(expected) and all(map(_fits, found, expected))
        _require(good, f"{value.function} takes {expected}, got {found}")
        _require(function.result is None or function.result == value.type, f"{value.function} is not {value.type}")
