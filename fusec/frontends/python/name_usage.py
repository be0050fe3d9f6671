"""The names that a function assigns and reads, found in the syntax tree alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fusec.frontends.python import syntax as s


def assigned(body: Iterable[s.Statement]) -> dict[str, None]:
    """The names that statements assign anywhere, in order."""
    found: dict[str, None] = {}
    for statement in _all(body):
        if isinstance(statement, s.FunctionNode):
            found[statement.name] = None
        for target in _targets(statement):
            found |= dict.fromkeys(named(target))
    return found


def exposed(body: Iterable[s.Statement]) -> set[str]:
    """The names that are read anywhere except as the counter of a loop."""
    found: set[str] = set()
    for statement in body:
        inner = set().union(*map(exposed, _blocks(statement)))
        found |= _reads(statement) | (inner - set(named(statement.target)) if isinstance(statement, s.For) else inner)
    return found


def read_first(body: s.Body, certain: frozenset[str]) -> tuple[set[str], frozenset[str]]:
    """The names that statements read before they are sure to be assigned, and those that are assigned afterwards.

    certain: the names that are assigned before.
    """
    early: set[str] = set()
    for statement in body:
        early |= _reads(statement) - certain
        known = certain.union(named(statement.target)) if isinstance(statement, s.For) else certain
        ways = [read_first(way, known) for way in _blocks(statement)]
        early = early.union(*(found for found, _ in ways))
        if isinstance(statement, s.IfNode):
            ends = [after for way, (_, after) in zip(_blocks(statement), ways, strict=True) if not _leaves(way)]
            certain = frozenset.intersection(*ends) if ends else certain
        elif not ways:
            certain = certain.union(assigned((statement,)))
    return early, certain


def _leaves(body: s.Body) -> bool:
    """Whether what follows these statements is not reached from them."""
    return bool(body) and isinstance(body[-1], (s.BreakNode, s.ContinueNode, s.ReturnNode))


def free(function: s.FunctionNode) -> dict[str, None]:
    """Names, plain or dotted, that a function reads and does not assign, annotations included."""
    bound = _bound(function)
    found: dict[str, None] = {}
    statements = list(_all(function.body))
    roots = [part for statement in statements for part in _parts(statement)]
    roots += [statement.annotation for statement in statements if isinstance(statement, s.Annotate)]
    roots += [each for each in (*(param.annotation for param in function.params), function.returns) if each is not None]
    for root in roots:
        found |= dict.fromkeys(name for name in dotted(root) if name.partition(".")[0] not in bound)
    for inner in inside(function.body):
        found |= dict.fromkeys(name for name in free(inner) if name.partition(".")[0] not in bound)
    return found


def inside(body: Iterable[s.Statement]) -> list[s.FunctionNode]:
    """The functions inside a function."""
    return [each for each in _all(body) if isinstance(each, s.FunctionNode)]


def _bound(function: s.FunctionNode) -> set[str]:
    return {param.name for param in function.params} | set(assigned(function.body))


def names(node: s.Expression) -> Iterator[str]:
    """The names in an expression."""
    for each in _nodes(node):
        if isinstance(each, s.Name):
            yield each.name


def dotted(node: s.Expression) -> Iterator[str]:
    """The names in an expression, and the chains of attributes on them."""
    for each in _nodes(node):
        match each:
            case s.Name(name=name):
                yield name
            case s.Attribute() if (found := dotted_name(each)) is not None:
                yield found


def dotted_name(node: s.Expression) -> str | None:
    """``a.b.c`` as a text; None if it is no chain of names."""
    chain: list[str] = []
    while isinstance(node, s.Attribute):
        chain.append(node.name)
        node = node.value
    return ".".join((node.name, *reversed(chain))) if isinstance(node, s.Name) else None


def called(node: s.Expression) -> str:
    """The name that an expression calls, without a module before it; "" for other expressions."""
    return node.callee.name if isinstance(node, s.CallNode) and isinstance(node.callee, s.Name) else ""


def last_name(node: s.Expression) -> str:
    """``c`` of ``a.b.c``; "" for what is no chain of names."""
    return (dotted_name(node) or "").rpartition(".")[2]


def _blocks(statement: s.Statement) -> tuple[s.Body, ...]:
    """The statements inside a branch or a loop."""
    match statement:
        case s.IfNode(then=then, orelse=orelse):
            return then, orelse
        case s.WhileNode(body=inner) | s.For(body=inner):
            return (inner,)
    return ()


def _all(body: Iterable[s.Statement], loops: bool = True) -> Iterator[s.Statement]:
    """Statements with those inside them; loops: also with those inside of loops."""
    for statement in body:
        yield statement
        for block in _blocks(statement) if loops or isinstance(statement, s.IfNode) else ():
            yield from _all(block, loops)


def _targets(statement: s.Statement) -> tuple[s.Expression, ...]:
    """The targets of an assignment or a loop."""
    match statement:
        case s.AssignNode(targets=targets):
            return targets
        case s.Augment(target=target) | s.Annotate(target=target) | s.For(target=target):
            return (target,)
    return ()


def _parts(statement: s.Statement) -> tuple[s.Expression, ...]:
    """The expressions that a statement itself reads."""
    match statement:
        case s.AssignNode(value=value, targets=targets):
            return (value, *(each for each in targets if not isinstance(each, (s.Name, s.Tuple))))
        case s.Annotate(value=value):
            return () if value is None else (value,)
        case s.FunctionNode(params=params):
            return tuple(param.default for param in params if param.default is not None)
        case s.For(iterable=value):
            return (value,)
    return tuple(each for each in _children(statement) if isinstance(each, s.Expression))


def _reads(statement: s.Statement) -> set[str]:
    """The names that a statement itself reads, those of an inner function included."""
    inner = free(statement) if isinstance(statement, s.FunctionNode) else ()
    return {name for part in _parts(statement) for name in names(part)} | {name.partition(".")[0] for name in inner}


def named(target: s.Expression) -> Iterator[str]:
    """The names that a target assigns."""
    match target:
        case s.Name(name=name):
            yield name
        case s.Tuple(items=items):
            for item in items:
                yield from named(item)


def _children(node: s.Node) -> list[s.Node]:
    """The nodes that a node holds itself."""
    found: list[s.Node] = []
    pending = [getattr(node, name) for name in reversed(node.__match_args__)]
    while pending:
        each = pending.pop()
        if isinstance(each, s.Node):
            found.append(each)
        elif isinstance(each, tuple):
            pending += reversed(each)
    return found


def _nodes(node: s.Expression) -> Iterator[s.Expression]:
    """An expression with those inside it."""
    pending: list[s.Node] = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, s.Expression):
            yield each
        inner = _children(each)
        pending += reversed(inner) if isinstance(each, (s.Binary, s.Junction)) else inner


def returned(body: Iterable[s.Statement]) -> list[s.Expression]:
    """The values that a function returns."""
    return [each.value for each in _all(body) if isinstance(each, s.ReturnNode) and each.value is not None]


def values_of(name: str, body: Iterable[s.Statement]) -> list[s.Expression]:
    """The values that are assigned to a name alone."""
    found = [each for each in _all(body) if isinstance(each, s.AssignNode)]
    return [each.value for each in found if any(isinstance(to, s.Name) and to.name == name for to in each.targets)]


def indexed(body: s.Body) -> set[str]:
    """The names that are indexed anywhere, also in inner functions."""
    nodes = (each for statement in _all(body) for part in _parts(statement) for each in _nodes(part))
    found = {each.value.name for each in nodes if isinstance(each, s.Index) and isinstance(each.value, s.Name)}
    return found.union(*(indexed(inner.body) - _bound(inner) for inner in inside(body)))


def indexes(body: s.Body, names_known: set[str], arrays_known: set[str]) -> bool:
    """Whether some arrays are indexed by values that depend on some names, also through assignments."""
    found, before = set(names_known), 0
    assignments = [each for each in _all(body) if isinstance(each, (s.AssignNode, s.Augment, s.Annotate))]
    while len(found) != before:
        before = len(found)
        for each in assignments:
            if each.value is not None and not found.isdisjoint(names(each.value)):
                found |= set(assigned((each,)))
    return any(
        isinstance(node, s.Index)
        and isinstance(node.value, s.Name)
        and node.value.name in arrays_known
        and not found.isdisjoint(names(node.index))
        for node in _expressions(body)
    )


def jumps(body: s.Body) -> set[str]:
    """The statements that jump out of an iteration of the loop with this body: "break", "continue"."""
    words = {s.BreakNode: "break", s.ContinueNode: "continue"}
    return {words[type(each)] for each in _all(body, loops=False) if type(each) in words}


def without_continue(body: s.Body, left: str) -> s.Body:
    """The body with break for continue, and before each break of its own, if it has any, ``left = True``."""
    found: list[s.Statement] = []
    for statement in body:
        match statement:
            case s.ContinueNode(span=span):
                found.append(s.BreakNode(span))
            case s.BreakNode(span=span) if left:
                found += [s.AssignNode(span, (s.Name(span, left),), s.Constant(span, True)), statement]
            case s.IfNode(span=span, condition=condition, then=then, orelse=orelse):
                found.append(s.IfNode(span, condition, without_continue(then, left), without_continue(orelse, left)))
            case _:
                found.append(statement)
    return tuple(found)


def arrays(body: Iterable[s.Statement]) -> set[str]:
    """The names that are used as arrays anywhere: indexed, queried for their shape, or updated by a function."""
    found = updated(body)
    for node in _expressions(body):
        match node:
            case (
                s.Index(value=s.Name(name=name))
                | s.Attribute(value=s.Name(name=name), name="shape" | "flat" | "size" | "ndim")
                | s.CallNode(callee=s.Name(name="len"), args=(s.Name(name=name),))
            ):
                found.add(name)
    return found


def stored(body: Iterable[s.Statement]) -> set[str]:
    """The names of arrays whose elements are assigned to."""
    statements = [each for each in _all(body) if not isinstance(each, s.For)]
    return {name for each in statements for target in _targets(each) for name in _elements(target)}


def updated(body: Iterable[s.Statement], names: frozenset[str] = frozenset()) -> set[str]:
    """The arrays that atomic functions update, known by their names or by those that the text gives them."""
    found: set[str] = set()
    for node in _expressions(body):
        match node:
            case s.CallNode(callee=(s.Name(name=called) | s.Attribute(name=called)), args=(first, *_)):
                if called.startswith("atomic_") or called in names:
                    found |= {each for each in names_of(first) if each}
    return found


def names_of(node: s.Expression) -> Iterator[str]:
    """The array that an expression is: a name, or its elements in order, ``x.flat``."""
    match node:
        case s.Name(name=name) | s.Attribute(value=s.Name(name=name), name="flat"):
            yield name


def indices(body: Iterable[s.Statement]) -> dict[str, int]:
    """The number of indices behind each name, the largest if they differ."""
    found: dict[str, int] = {}
    for node in _expressions(body):
        match node:
            case s.Index(value=s.Name(name=name), index=index):
                found[name] = max(found.get(name, 0), len(index.items) if isinstance(index, s.Tuple) else 1)
    return found


def _elements(target: s.Expression) -> Iterator[str]:
    match target:
        case s.Index(value=value):
            yield from names_of(value)
        case s.Tuple(items=items):
            for item in items:
                yield from _elements(item)


def _expressions(body: Iterable[s.Statement]) -> Iterator[s.Expression]:
    """All expressions in statements, targets of assignments included."""
    for statement in _all(body):
        targets = statement.targets if isinstance(statement, s.AssignNode) else ()
        for part in (*_parts(statement), *targets):
            yield from _nodes(part)


def ends(body: s.Body) -> bool:
    """True if control never passes the statements: each path through them returns."""
    branches = (isinstance(each, s.IfNode) and ends(each.then) and ends(each.orelse) for each in body)
    return any(isinstance(each, s.ReturnNode) for each in body) or any(branches)
