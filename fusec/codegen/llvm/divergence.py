"""The values that differ between lanes, and the points where lanes diverge, found before any text is written.

Note [Regions]. A region is a stretch of statements that the same lanes run. A branch on a varying condition, the body
of a loop that lanes leave at different times, and what follows an exit that only some lanes take each form a region of
their own inside the one around them. A variable's *home* is the innermost region that holds all its reads and later
writes; lanes outside it never look at the variable. So a write within the home region needs no mask, and a variable
whose writes are all uniform and within its home is one scalar, whatever lanes are active: the counter of a loop from
which lanes drop out, for instance. A home may lie inside a loop only if the declaration is run again for every entry
of that loop, for a lane that stayed out the last time would find an old value otherwise. Lanes that returned, or broke
out of a loop around the home, have left the home for good: what follows such an exit counts as the region before it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence

from fusec.base.records import dataclass, field
from fusec.ir import loops as ir
from fusec.ir.expr import Const, Expr
from fusec.ir.walk import blocks, changed_by, expressions, inner_first, operands

MOST_ELEMENTS_APART = 64  # longer local arrays stay in memory even if every index is a constant


@dataclass(frozen=True)
class Exit:
    """How some lanes leave: the kind of statement, and the loop that a break or continue belongs to."""

    kind: str
    loop: FlowNode | None


@dataclass(eq=False)
class LaneRegion:
    """Statements that the same lanes run.

    loop: the loop around the statement that opened the region. body_of: the loop whose body it is. after: the exits
    that some lanes took just before, if that is why the region begins.
    """

    parent: LaneRegion | None
    loop: FlowNode | None
    body_of: FlowNode | None = None
    after: frozenset[Exit] | None = None

    def __post_init__(self) -> None:
        self.depth: int = 0 if self.parent is None else self.parent.depth + 1

    def is_within(self, loop: FlowNode | None) -> bool:
        """Whether the region lies in the body of a loop."""
        region: LaneRegion | None = self
        while region is not None and region.body_of is not loop:
            region = region.parent
        return region is not None

    def is_all_of(self, home: LaneRegion) -> bool:
        """Whether all lanes that are still in `home`, a region around this one, run this one."""
        region = self
        while region is not home:
            if region.after is None or region.parent is None:
                return False
            if not all(
                exit_.kind == "return" or (exit_.kind == "break" and home.is_within(exit_.loop))
                for exit_ in region.after
            ):
                return False
            region = region.parent
        return True


@dataclass(eq=False)
class FlowNode:
    """A statement and what lanes do in it.

    first, second: branches of an If, body and step of a While. varying: an If on a varying condition, a While that
    lanes leave at different times, an exit that only some lanes take. leaves: some lanes inside go elsewhere than to
    the next statement. skips: some lanes continue a While early. blended: a write that other lanes must not see.
    """

    stmt: ir.Stmt
    first: list[FlowNode] = field(default_factory=list)
    second: list[FlowNode] = field(default_factory=list)
    varying: bool = False
    leaves: bool = False
    skips: bool = False
    blended: bool = False


@dataclass
class FlowPlan:
    """A function body with all decisions made.

    varying: names of variables and local arrays that differ between lanes. slotted: variables written in a nested
    statement list, which live in stack slots. apart: local arrays that are one variable for every element.
    parted: some lanes return before others. result_varies: of the returned value.
    """

    body: list[FlowNode]
    varying: set[str] = field(default_factory=set)
    slotted: set[str] = field(default_factory=set)
    apart: set[str] = field(default_factory=set)
    parted: bool = False
    result_varies: bool = False


@dataclass(eq=False)
class _Name:
    """Where a variable is declared and used."""

    declared: LaneRegion
    loop: FlowNode | None
    used: LaneRegion | None = None
    writes: list[tuple[FlowNode, LaneRegion]] = field(default_factory=list)

    def use(self, region: LaneRegion) -> None:
        self.used = region if self.used is None else _common(self.used, region)

    def home(self) -> LaneRegion:
        """See Note [Regions]."""
        region = self.declared if self.used is None else self.used
        while region is not self.declared and region.loop is not self.loop and region.parent is not None:
            region = region.parent
        return region


def _common(a: LaneRegion, b: LaneRegion) -> LaneRegion:
    """The innermost region around both."""
    while a is not b:
        deeper, other = (a, b) if a.depth >= b.depth else (b, a)
        assert deeper.parent is not None, "regions of one function share a root"
        a, b = deeper.parent, other
    return a


def local_access(pointer: Expr) -> tuple[str, Expr | None] | None:
    """Array and index (None for 0) of an address that is plainly an element of a local array."""
    match pointer:
        case ir.LocalArray(name=name):
            return name, None
        case ir.Offset(pointer=ir.LocalArray(name=name), offset=index):
            return name, index
    return None


def _written(stmt: ir.Stmt) -> str:
    """The name of the variable a statement writes after its declaration, or nothing."""
    access = local_access(stmt.pointer) if isinstance(stmt, ir.Store) else None
    return access[0] if access else changed_by(stmt)


def _tree(body: Iterable[ir.Stmt]) -> list[FlowNode]:
    pairs = ((stmt, blocks(stmt) or ((), ())) for stmt in body)
    return [FlowNode(stmt, _tree(first), _tree(second)) for stmt, (first, second) in pairs]


class Analysis:
    """Plans for the body of one program and for its functions, by which of their arguments vary.

    source_varies: whether an Element or a Query varies; nothing does with one lane.
    """

    def __init__(self, functions: Iterable[ir.Function], source_varies: Callable[[Expr], bool], lanes: int) -> None:
        self.functions = {function.name: function for function in functions}
        self.source_varies = source_varies
        self.lanes = lanes
        self._plans: dict[tuple[str, tuple[bool, ...]], FlowPlan] = {}
        self._of_bodies: dict[object, tuple[object, FlowPlan]] = {}  # with the body, which a key names by its identity

    def body(
        self, body: tuple[ir.Stmt, ...], params: Iterable[str], varying: Container[str] = (),
        values: Sequence[Expr] = (),
    ) -> FlowPlan:  # fmt: skip
        """The plan of a kernel body; its scalar parameters are uniform, all but those named. values: read after it."""
        given = {name: name in varying for name in params}
        key = id(body), *given.items(), *values
        if key not in self._of_bodies:
            self._of_bodies[key] = body, _FunctionAnalysis(self, body, given, values).run()
        return self._of_bodies[key][1]

    def function(self, name: str, varying: tuple[bool, ...]) -> FlowPlan:
        """The plan of a function for arguments of which the given ones vary."""
        key = (name, varying)
        if key not in self._plans:
            function = self.functions[name]
            params = {param: flag for (param, _), flag in zip(function.params, varying, strict=True)}
            self._plans[key] = _FunctionAnalysis(self, function.body, params).run()
        return self._plans[key]


class _FunctionAnalysis:
    def __init__(
        self, program: Analysis, body: Iterable[ir.Stmt], params: dict[str, bool], values: Sequence[Expr] = ()
    ) -> None:
        self.program = program
        self.values = values
        self.params = params
        self.plan = FlowPlan(_tree(body))
        self.escaped: set[str] = set()
        self.indexed: dict[str, bool] = {}  # array -> every index so far is a constant within bounds
        self.names: dict[str, _Name] = {}
        self.known: dict[Expr, bool] = {}
        self.loops: list[tuple[FlowNode, LaneRegion]] = []
        self.root = LaneRegion(None, None)
        self.changed = False

    def run(self) -> FlowPlan:
        """Repeat until nothing more is found to vary."""
        plan = self.plan
        lengths: dict[str, int] = {}
        self._survey(plan.body, dict.fromkeys(self.params, 0), [1], lengths)
        for value in self.values:
            self._survey_expression(value, False, lengths)
        plan.apart = {
            name
            for name, constant in self.indexed.items()
            if constant and name not in self.escaped and lengths.get(name, 0) <= MOST_ELEMENTS_APART
        }
        if self.program.lanes == 1:
            return plan
        plan.varying |= {name for name, flag in self.params.items() if flag} | self.escaped
        self.changed = True
        while self.changed:
            while self.changed:  # which loops lanes leave must be settled before writes are judged
                self.changed = False
                self._pass()
            self._judge_writes()
        return plan

    # --- structure ---------------------------------------------------------------------------------------------

    def _survey(self, nodes: list[FlowNode], owners: dict[str, int], count: list[int], lengths: dict[str, int]) -> None:
        """Find variables written in other lists than their declaration's, and how local arrays are addressed."""
        mine = count[0] - 1
        for node in nodes:
            for expr in operands(node.stmt):
                self._survey_expression(expr, isinstance(node.stmt, ir.Store) and expr is node.stmt.pointer, lengths)
            match node.stmt:
                case ir.Declare(name=name):
                    owners[name] = mine
                case ir.DeclareArray(name=name, length=length):
                    lengths[name] = length
                    self.indexed.setdefault(name, True)
            written = _written(node.stmt)
            if written and owners.get(written, mine) != mine:
                self.plan.slotted.add(written)
            for part in (node.first, node.second):
                if part:
                    count[0] += 1
                    self._survey(part, owners, count, lengths)

    def _survey_expression(self, root: Expr, is_place: bool, lengths: dict[str, int]) -> None:
        pending, seen = [(root, is_place)], set()
        while pending:
            expr, place = pending.pop()
            access = local_access(expr) if place else None
            if access is not None:
                name, index = access
                at = 0 if index is None else (int(index.value) if isinstance(index, Const) else -1)
                self.indexed[name] = self.indexed.get(name, True) and 0 <= at < lengths.get(name, 0)
                pending += [] if index is None else [(index, False)]
            elif (expr, place) not in seen:
                seen.add((expr, place))
                if isinstance(expr, ir.LocalArray):
                    self.escaped.add(expr.name)
                pending += [(child, isinstance(expr, ir.Load)) for child in expr.children]

    # --- one pass ------------------------------------------------------------------------------------------------

    def _pass(self) -> None:
        self.known.clear()
        self.names = {name: _Name(self.root, None) for name in self.params}
        self._walk(self.plan.body, self.root)
        for value in self.values:
            self._read(value, self.root)

    def _judge_writes(self) -> None:
        """Find writes that some lanes at home must not see; the variable then varies."""
        for name, entry in self.names.items():
            home = entry.home()
            for node, region in entry.writes:
                is_declaration = isinstance(node.stmt, ir.Declare | ir.DeclareArray)
                around = _common(region, home)
                hidden = (is_declaration and around is region) or (around is home and region.is_all_of(home))
                node.blended = not hidden
                if node.blended:
                    self._vary(name)

    def _flag(self, node: FlowNode, what: str) -> None:
        if not getattr(node, what):
            setattr(node, what, True)
            self.changed = True

    def _vary(self, name: str) -> None:
        if name not in self.plan.varying:
            self.plan.varying.add(name)
            self.changed = True

    def _walk(self, nodes: list[FlowNode], region: LaneRegion) -> tuple[LaneRegion, set[Exit]]:
        """Visit statements in order; returns the region at the end and the kinds of exits some lanes took."""
        exits: set[Exit] = set()
        for node in nodes:
            for expr in operands(node.stmt):
                self._read(expr, region)
            taken = self._visit(node, region)
            if taken:
                self._flag(node, "leaves")
                region = LaneRegion(region, self._loop(), after=frozenset(taken))
            exits |= taken
        return region, exits

    def _loop(self) -> FlowNode | None:
        return self.loops[-1][0] if self.loops else None

    def _visit(self, node: FlowNode, region: LaneRegion) -> set[Exit]:
        match node.stmt:
            case ir.Declare(name=name, value=value):
                self._declare(node, name, region, value is not None and self.varies(value))
            case ir.DeclareArray(name=name, values=values):
                self._declare(node, name, region, any(map(self.varies, values)))
            case ir.Assign(name=name, value=value) | ir.SetField(name=name, value=value):
                self._write(node, name, region, self.varies(value))
            case ir.Shuffle(result=name, value=value, distance=distance):
                self._write(node, name, region, distance not in (ir.FIRST, ir.LAST) and self.varies(value))
            case ir.Atomic(result=name) if name:
                self._write(node, name, region, varies=True)
            case ir.CallStatement(call=call, result=name):
                if name:
                    self._write(node, name, region, self.varies(call))
            case ir.Store(pointer=pointer, value=value):
                self._store(node, pointer, value, region)
            case ir.If(condition=condition):
                return self._branch(node, condition, region)
            case ir.While(condition=condition):
                return self._repeat(node, condition, region)
            case ir.Break() | ir.Continue():
                return self._leave(node, region, self.loops[-1][1])
            case ir.Return(value=value):
                if value is not None and self.varies(value) and not self.plan.result_varies:
                    self.plan.result_varies = self.changed = True
                return self._leave(node, region, self.root)
        return set()

    def _declare(self, node: FlowNode, name: str, region: LaneRegion, varies: bool) -> None:
        entry = self.names[name] = _Name(region, self._loop())
        entry.writes.append((node, region))
        if varies:
            self._vary(name)

    def _write(self, node: FlowNode, name: str, region: LaneRegion, varies: bool) -> None:
        entry = self.names[name]
        entry.use(region)
        entry.writes.append((node, region))
        if varies:
            self._vary(name)

    def _store(self, node: FlowNode, pointer: Expr, value: Expr, region: LaneRegion) -> None:
        access = local_access(pointer)
        if access is not None:
            name, index = access
            self._write(node, name, region, self.varies(value) or (index is not None and self.varies(index)))

    def _branch(self, node: FlowNode, condition: Expr, region: LaneRegion) -> set[Exit]:
        if self.varies(condition):
            self._flag(node, "varying")
        exits: set[Exit] = set()
        for part in (node.first, node.second):
            inner = LaneRegion(region, self._loop()) if node.varying else region
            exits |= self._walk(part, inner)[1]
        return exits

    def _repeat(self, node: FlowNode, condition: Expr, region: LaneRegion) -> set[Exit]:
        inner = LaneRegion(region, self._loop(), body_of=node) if node.varying else region
        self.loops.append((node, inner))
        self._read(condition, inner)
        _, exits = self._walk(node.first, inner)
        self._walk(node.second, inner)
        self._read(condition, inner)
        self.loops.pop()
        if self.varies(condition) or any(exit_.kind != "continue" for exit_ in exits):
            self._flag(node, "varying")
        if any(exit_.kind == "continue" for exit_ in exits):
            self._flag(node, "skips")
        return {exit_ for exit_ in exits if exit_.kind == "return"}

    def _leave(self, node: FlowNode, region: LaneRegion, whole: LaneRegion) -> set[Exit]:
        """An exit: taken by all lanes of the region it leaves, or by some."""
        if region is whole:
            return set()
        self._flag(node, "varying")
        kind = type(node.stmt).__name__.lower()
        if kind == "return" and not self.plan.parted:
            self.plan.parted = self.plan.result_varies = self.changed = True
        return {Exit(kind, self._loop())}

    # --- expressions ---------------------------------------------------------------------------------------------

    def _read(self, root: Expr, region: LaneRegion) -> None:
        for expr in expressions((root,)):
            if isinstance(expr, ir.Local | ir.LocalArray):
                self.names[expr.name].use(region)

    def varies(self, root: Expr) -> bool:
        """Whether an expression may differ between lanes, as far as is known by now."""
        for expr in inner_first((root,), self.known):
            self.known[expr] = self._varies(expr)
        return self.known[root]

    def _varies(self, expr: Expr) -> bool:
        match expr:
            case ir.Local(name=name) | ir.LocalArray(name=name):
                return name in self.plan.varying
            case ir.Call(function=name, args=args):
                return self.program.function(name, tuple(self.known[arg] for arg in args)).result_varies
            case ir.Element() | ir.Moved() | ir.Query():
                if self.program.source_varies(expr):
                    return True
        return any(self.known[child] for child in expr.children)
