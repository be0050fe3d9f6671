"""Facts about statements that determine the layout of a C text; all are derived from the IR."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from fusec.base.dtypes import DType
from fusec.ir import loops as ir
from fusec.ir.expr import Apply, Const, Expr, Lookup, Pointer, Struct, Type, type_of
from fusec.ir.scans import TURN
from fusec.ir.walk import (
    blocks,
    certain,
    changed_names,
    expressions,
    inner_first,
    is_elementary,
    operands,
    statements,
    uses_of,
)

LEAST_ALTERNATIVE, MOST_ALTERNATIVE = 6, 24  # operations of what is computed though it may not be chosen


def nodes(body: Iterable[ir.Stmt]) -> Iterator[Expr]:
    """Every expression node of the statements; nodes of different statements may repeat."""
    for stmt in statements(body):
        yield from inner_first(operands(stmt))


def declared(body: Iterable[ir.Stmt]) -> list[str]:
    """Names declared in a body, in order."""
    return [stmt.name for stmt in statements(body) if isinstance(stmt, ir.Declare | ir.DeclareArray)]


def mentions(body: Iterable[ir.Stmt], name: str) -> bool:
    """Whether the statements read or set a local."""
    body = tuple(body)
    reads = (node.name for node in nodes(body) if isinstance(node, ir.Local))
    return name in changed_names(body) or name in reads


def leaves_from_loop(body: Iterable[ir.Stmt]) -> bool:
    """Whether a Return is inside a While."""
    loops = (stmt for stmt in statements(body) if isinstance(stmt, ir.While))
    return any(isinstance(stmt, ir.Return) for loop in loops for stmt in statements(loop.body + loop.step))


def always_returns(body: Sequence[ir.Stmt]) -> bool:
    """Whether the end of the body is certainly not reached."""
    match body[-1] if body else None:
        case ir.Return():
            return True
        case ir.If(_, then, orelse):
            return always_returns(then) and always_returns(orelse)
        case _:
            return False


def always_stores(body: Sequence[ir.Stmt], param: str) -> bool:
    """Whether the current element of `param` is stored on every path through the body."""
    done, finished = _stores(body, param)
    return finished and done


def _stores(body: Sequence[ir.Stmt], param: str) -> tuple[bool, bool]:
    """(stored where the end is reached, stored at every Return)."""
    stored, returns = False, True
    for stmt in body:
        match stmt:
            case ir.Store(ir.Element(name)) if name == param:
                stored = True
            case ir.Return():
                return True, returns and stored
            case ir.If(_, then, orelse):
                first, first_returns = _stores(then, param)
                second, second_returns = _stores(orelse, param)
                returns = returns and (stored or (first_returns and second_returns))
                stored = stored or (first and second)
            case ir.While(_, inner, step):
                returns = returns and (stored or _stores(inner + step, param)[1])
    return stored, returns


def updates_beyond_elements(body: Iterable[ir.Stmt], copied: frozenset[str] = frozenset()) -> bool:
    """Whether the body writes to memory other than the current elements, or calls a function that might.

    copied: arrays of which updates do not count.
    """
    for stmt in statements(body):
        match stmt:
            case ir.Atomic(pointer=ir.At(param)) if param in copied:
                continue
            case ir.Atomic() | ir.AtomicStore() | ir.CallStatement():
                return True
            case ir.Store(pointer) if not isinstance(pointer, ir.Element) and _is_global(type_of(pointer)):
                return True
    return False


def asks_where_it_is(body: Iterable[ir.Stmt]) -> bool:
    """Whether the body uses the position of the element, or elements at other positions."""
    return any(
        isinstance(node, ir.Moved) or (isinstance(node, ir.Query) and node.what in ("index", "coordinate"))
        for node in nodes(body)
    )


def _is_global(found: Type) -> bool:
    return isinstance(found, Pointer) and found.space == "global"


def has_element_pointers(body: Iterable[ir.Stmt]) -> bool:
    """Whether the address of a current element is used other than to load or store that element."""
    inside = set()
    for stmt in statements(body):
        for node in inner_first(operands(stmt)):
            inside |= {child for child in node.children if not isinstance(node, ir.Load)}
        inside |= {root for root in operands(stmt) if not (isinstance(stmt, ir.Store) and root is stmt.pointer)}
    return any(isinstance(node, ir.Element) for node in inside)


def cost(program: ir.Program) -> int:
    """The estimated scalar operations for one element; a loop counts as eight iterations.

    What elementary functions do for rare arguments only does not count.
    """
    functions: dict[str, int] = {}
    for function in program.functions:
        is_guarded = is_elementary(function)
        body = [stmt for stmt in function.body if not (is_guarded and isinstance(stmt, ir.If))]
        functions[function.name] = _cost(body, functions)
    return max(1, _cost(program.body, functions))


def rare(functions: Iterable[ir.Function]) -> set[str]:
    """The functions that elementary functions call for rare arguments only."""
    found, usual = set[str](), set[str]()
    for function in functions:
        for stmt in function.body:
            called = {node.function for node in nodes([stmt]) if isinstance(node, ir.Call)}
            if is_elementary(function) and isinstance(stmt, ir.If):
                found |= called
            else:
                usual |= called
    return found - usual


def _cost(body: Iterable[ir.Stmt], functions: dict[str, int]) -> int:
    total = 0
    for stmt in body:
        for node in inner_first(operands(stmt)):
            match node:
                case ir.Call(name):
                    total += functions[name]
                case Apply() | ir.Load() | Lookup():
                    total += 1
        inner = sum(_cost(block, functions) for block in blocks(stmt))
        total += 8 * inner if isinstance(stmt, ir.While) else inner
    return total


def walks(body: Iterable[ir.Stmt]) -> bool:
    """Whether a loop loads elements at other positions of the iteration space."""
    return any(isinstance(stmt, ir.While) and _loaded_by_walks(stmt.body) > 0 for stmt in statements(body))


def rounds_at_once(loop: ir.While, nbytes: int, most: int) -> int:
    """Iterations of a loop to unroll, so that a thread waits for many loads together; 1 for loops that walk no axis.

    nbytes: loads that should be under way. most: rounds, and scalar operations are at most 64 for each of them.
    """
    loaded = _loaded_by_walks(loop.body)
    if not loaded:
        return 1
    operations = sum(
        1 for stmt in statements(loop.body) for node in inner_first(operands(stmt)) if isinstance(node, Apply)
    )
    return max(1, min(most, nbytes // loaded, 64 * most // max(1, operations)))


def _loaded_by_walks(body: Iterable[ir.Stmt]) -> int:
    """Bytes that statements load from other positions of the iteration space; loops of a known number of rounds count
    as often.
    """
    total = 0
    for stmt in body:
        for node in inner_first(operands(stmt)):
            match node:
                case ir.Load(ir.Moved(), dtype):
                    total += dtype.nbytes
        times = fixed_rounds(stmt) or 1
        total += times * sum(_loaded_by_walks(block) for block in blocks(stmt))
    return total


def held_bytes(body: Sequence[ir.Stmt]) -> int:
    """The most bytes of registers that local arrays of a body with unrolled loops need at a time, 0 if it has none.

    Where walks convert what they read to wider floats, ptxas keeps these for the next walk, too.
    """
    if not any(isinstance(stmt, ir.While) and stmt.unrolled for stmt in statements(body)):
        return 0
    arrays = [stmt for stmt in body if isinstance(stmt, ir.DeclareArray) and stmt.space == "local"]
    named = [{node.name for node in nodes([stmt]) if isinstance(node, ir.LocalArray)} for stmt in body]
    uses = {each.name: [at for at, names in enumerate(named) if each.name in names] for each in arrays}
    nbytes = {each.name: each.length * max(ir.REGISTER, each.element.nbytes) for each in arrays if uses[each.name]}
    ends = [(uses[name][0], uses[name][-1], size) for name, size in nbytes.items()]
    live = (sum(size for first, last, size in ends if first < at <= last) for at in range(len(body)))
    most = max(*live, *nbytes.values())
    is_wide = any(each.element.nbytes > ir.REGISTER for each in arrays)
    return most if is_wide or not any(map(_widens, nodes(body))) else 2 * most


def held_slots(body: Sequence[ir.Stmt]) -> int:
    """The most elements of a local array."""
    found = (stmt.length for stmt in body if isinstance(stmt, ir.DeclareArray) and stmt.space == "local")
    return max(found, default=0)


def _widens(node: Expr) -> bool:
    """Whether a node converts a float of one register to a type that needs two."""
    match node:
        case Apply("convert", (value,), kind):
            given = type_of(value)
            return isinstance(given, DType) and given.is_float and given.nbytes <= ir.REGISTER < kind.nbytes
        case _:
            return False


def fixed_rounds(stmt: ir.Stmt) -> int | None:
    """The number of iterations of a loop that counts to a constant, if it counts from 0 by 1."""
    match stmt:
        case ir.While(Apply("less", (ir.Local(), Const() as limit))):
            return int(limit.value)
        case _:
            return None


def indexes(loop: ir.While) -> bool:
    """Whether a loop indexes local arrays by its counter."""
    counters = {each.name for each in loop.step if isinstance(each, ir.Assign)}
    places = [node for node in nodes(loop.body) if isinstance(node, ir.Offset)]
    return any(
        isinstance(place.pointer, ir.LocalArray)
        and place.type.space == "local"
        and isinstance(place.offset, ir.Local)
        and place.offset.name in counters
        for place in places
    )


def together(body: Iterable[ir.Stmt]) -> int:
    """How many positions side by side exchange values, if they combine them by halves; 1 if none do."""
    distances = (stmt.distance % ir.EXCHANGED for stmt in statements(body) if isinstance(stmt, ir.Shuffle))
    return 2 * max(distances, default=0) or 1


def exchanges(program: ir.Program) -> bool:
    """Whether parts of groups share elements, so that the last group may not have all of them."""
    return any(isinstance(stmt, ir.Shuffle) and stmt.distance > ir.EXCHANGED for stmt in statements(program.body))


def is_told(pointer: Expr) -> bool:
    """Whether what is stored at an address is stored in the arrays of several blocks."""
    found = type_of(pointer)
    return isinstance(found, Pointer) and found.space == "told"


def has_shuffles(body: Iterable[ir.Stmt]) -> bool:
    """Whether threads read each other's values."""
    return any(isinstance(stmt, ir.Shuffle) for stmt in statements(body))


def takes_turns(program: ir.Program) -> bool:
    """Whether blocks take positions in the order in which they start: an array counts those that have."""
    return any(param.name == TURN and param.read for param in program.arrays)


def in_groups(program: ir.Program) -> bool:
    """Whether a block has whole groups: their threads read each other's values, or do not wait for each other."""
    return has_shuffles(program.body) or takes_turns(program)


def has_loops(program: ir.Program) -> bool:
    """Whether a While is in the body or in a function."""
    bodies = [program.body, *(function.body for function in program.functions)]
    return any(isinstance(stmt, ir.While) for body in bodies for stmt in statements(body))


def divides_wide(program: ir.Program) -> bool:
    """Whether the body or a function divides 64-bit integers by a value that is not a constant."""
    bodies = [program.body, *(function.body for function in called_functions(program))]
    return any(_is_wide_division(node) for body in bodies for node in nodes(body))


def _is_wide_division(node: Expr) -> bool:
    match node:
        case Apply("quotient" | "modulo", (_, divisor), dtype):
            return dtype.bits == 64 and not isinstance(divisor, Const)
        case _:
            return False


class TypeUse(NamedTuple):
    """A type in use and its place."""

    type: Type
    where: str  # the parameter or function it is in, "" for the kernel's own text
    line: int  # in that text, 0 if unknown


def types_of(program: ir.Program) -> list[TypeUse]:
    """Every type in use."""
    used = [TypeUse(param.dtype, f"parameter '{param.name}'", 0) for param in program.params]
    used += _types_in(program.body, "")
    for function in program.functions:
        where = f"function '{function.name}'"
        used += [TypeUse(dtype, where, 0) for _, dtype in function.params]
        used += [TypeUse(function.result, where, 0)] if function.result is not None else []
        used += _types_in(function.body, where)
    return used


def _types_in(body: Iterable[ir.Stmt], where: str) -> Iterator[TypeUse]:
    for stmt in statements(body):
        match stmt:
            case ir.Declare(_, declared) | ir.DeclareArray(_, declared):
                yield TypeUse(declared, where, stmt.line)
        yield from (TypeUse(type_of(node), where, stmt.line) for node in inner_first(operands(stmt)))


def parts(of: Type) -> tuple[DType, ...]:
    """The dtypes a type is made of."""
    match of:
        case DType():
            return (of,)
        case Struct():
            return tuple(dtype for _, dtype in of.fields)
        case Pointer():
            return (of.element,)


def called_functions(program: ir.Program) -> list[ir.Function]:
    """The functions that the body needs, directly or indirectly, callees first."""
    by_name = {function.name: function for function in program.functions}
    wanted: set[str] = set()
    pending: list[Sequence[ir.Stmt]] = [program.body]
    while pending:
        for node in nodes(pending.pop()):
            if isinstance(node, ir.Call) and node.function not in wanted:
                wanted.add(node.function)
                pending.append(by_name[node.function].body)
    return [function for function in program.functions if function.name in wanted]


def shared(found: Sequence[Expr], selects: bool = False) -> list[Expr]:
    """Values that are used more than once in one statement and may be computed before it, operands first.

    A value that loads or calls is left where it stands if it is only reached on demand: it may be guarded. selects:
    also the operands of choices that are a few operations each. Once they have names, both are computed and one is
    selected; else compilers branch, and threads of a warp that choose differently take both ways, one after the other.
    """
    uses = uses_of(found)
    every = list(inner_first(found))
    chosen = {*_alternatives(every)} if selects else set[Expr]()
    if not chosen and all(count < 2 for count in uses.values()):
        return []
    always = set(expressions(found, below=certain))
    guarded: set[Expr] = set()
    for node in every:
        if isinstance(node, ir.Load | ir.Call) or any(child in guarded for child in node.children):
            guarded.add(node)
    return [
        node
        for node in every
        if (uses[node] > 1 or node in chosen) and _is_worth_naming(node) and (node in always or node not in guarded)
    ]


def _alternatives(every: Iterable[Expr]) -> Iterator[Expr]:
    """Operands of choices that are a few operations each."""
    weights: dict[Expr, int] = {}
    for node in every:
        own = 0 if isinstance(node, Const | ir.Local) else 1
        own = MOST_ALTERNATIVE if isinstance(node, ir.Load | ir.Call | Lookup) else own
        weights[node] = min(own + sum(weights[child] for child in node.children), MOST_ALTERNATIVE)
        if isinstance(node, Apply) and node.op == "where":
            pair = node.children[1:]
            if LEAST_ALTERNATIVE <= max(weights[each] for each in pair) < MOST_ALTERNATIVE:
                yield from (each for each in pair if weights[each] > 1)


def _is_worth_naming(node: Expr) -> bool:
    match node:
        case Apply("convert", (source,)):
            return bool(source.children)
        case Apply() | ir.Load() | ir.Call() | Lookup():
            return not all(isinstance(child, Const) for child in node.children)
        case _:
            return False
