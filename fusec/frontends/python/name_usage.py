"""The names that a function assigns and reads, found in the syntax tree alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fusec.frontends.python import syntax as s


def assigned(body: Iterable[s.Statement]) -> dict[str, None]:
    """The names that statements assign anywhere, in order."""
    found: dict[str, None] = {}
    for statement in _all(body):
        match statement:
            case s.AssignNode(targets=targets):
                for target in targets:
                    found |= dict.fromkeys(named(target))
            case s.Augment(target=target) | s.Annotate(target=target) | s.For(target=target):
                found |= dict.fromkeys(named(target))
            case s.FunctionNode(name=name):
                found[name] = None
    return found


def exposed(body: Iterable[s.Statement]) -> set[str]:
    """The names that are read anywhere except as the counter of a loop."""
    found: set[str] = set()
    for statement in body:
        for part in _parts(statement):
            found |= set(names(part))
        match statement:
            case s.IfNode(then=then, orelse=orelse):
                found |= exposed(then) | exposed(orelse)
            case s.WhileNode(body=inner):
                found |= exposed(inner)
            case s.For(target=target, body=inner):
                found |= exposed(inner) - set(named(target))
            case s.FunctionNode():
                found |= {name.partition(".")[0] for name in free(statement)}
    return found


def read_first(body: s.Body, certain: frozenset[str]) -> tuple[set[str], frozenset[str]]:
    """The names that statements read before they are sure to be assigned, and those that are assigned afterwards.

    certain: the names that are assigned before.
    """
    early: set[str] = set()
    for statement in body:
        for part in _parts(statement):
            early |= set(names(part)) - certain
        match statement:
            case s.IfNode(then=then, orelse=orelse):
                ways = [read_first(way, certain) for way in (then, orelse)]
                early |= ways[0][0] | ways[1][0]
                ends = [after for way, (_, after) in zip((then, orelse), ways, strict=True) if not _leaves(way)]
                certain = frozenset.intersection(*ends) if ends else certain
            case s.WhileNode(body=inner):
                early |= read_first(inner, certain)[0]
            case s.For(target=target, body=inner):
                early |= read_first(inner, certain.union(named(target)))[0]
            case s.FunctionNode():
                early |= {name.partition(".")[0] for name in free(statement)} - certain
        if not isinstance(statement, (s.IfNode, s.WhileNode, s.For)):
            certain = certain.union(assigned((statement,)))
    return early, certain


def _leaves(body: s.Body) -> bool:
    """Whether what follows these statements is not reached from them."""
    return bool(body) and isinstance(body[-1], (s.BreakNode, s.ContinueNode, s.ReturnNode))


def free(function: s.FunctionNode) -> dict[str, None]:
    """Names, plain or dotted, that a function reads and does not assign, annotations included."""
    own = _own(function)
    found: dict[str, None] = {}
    roots = [part for statement in _all(function.body) for part in _parts(statement)]
    roots += [statement.annotation for statement in _all(function.body) if isinstance(statement, s.Annotate)]
    roots += [part for param in function.params for part in (param.annotation,) if part is not None]
    roots += [function.returns] if function.returns is not None else []
    for root in roots:
        found |= dict.fromkeys(name for name in dotted(root) if name.partition(".")[0] not in own)
    for inner in inside(function.body):
        found |= dict.fromkeys(name for name in free(inner) if name.partition(".")[0] not in own)
    return found


def inside(body: Iterable[s.Statement]) -> list[s.FunctionNode]:
    """The functions inside a function."""
    return [each for each in _all(body) if isinstance(each, s.FunctionNode)]


def _own(function: s.FunctionNode) -> set[str]:
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


def _all(body: Iterable[s.Statement]) -> Iterator[s.Statement]:
    """Statements with those inside them."""
    pending = list(body)[::-1]
    while pending:
        statement = pending.pop()
        yield statement
        match statement:
            case s.IfNode(then=then, orelse=orelse):
                pending += [*orelse[::-1], *then[::-1]]
            case s.WhileNode(body=inner) | s.For(body=inner):
                pending += inner[::-1]


def _parts(statement: s.Statement) -> tuple[s.Expression, ...]:
    """The expressions that a statement itself reads."""
    match statement:
        case s.AssignNode(value=value, targets=targets):
            return (value, *(each for each in targets if not isinstance(each, (s.Name, s.Tuple))))
        case s.Augment(target=target, value=value):
            return (target, value)
        case s.Annotate(value=value) | s.ReturnNode(value=value):
            return () if value is None else (value,)
        case s.Evaluate(value=value) | s.IfNode(condition=value) | s.WhileNode(condition=value) | s.For(iterable=value):
            return (value,)
        case s.Assert(condition=value):
            return (value,)
        case s.FunctionNode(params=params):
            return tuple(param.default for param in params if param.default is not None)
    return ()


def named(target: s.Expression) -> Iterator[str]:
    """The names that a target assigns."""
    match target:
        case s.Name(name=name):
            yield name
        case s.Tuple(items=items):
            for item in items:
                yield from named(item)


def _nodes(node: s.Expression) -> Iterator[s.Expression]:
    pending = [node]
    while pending:
        each = pending.pop()
        yield each
        match each:
            case s.Tuple(items=items):
                pending += items
            case s.Prefix(operand=operand):
                pending.append(operand)
            case s.Binary(left=left, right=right) | s.Junction(left=left, right=right):
                pending += [right, left]
            case s.Compare(first=first, rest=rest):
                pending += [first, *(operand for _, operand in rest)]
            case s.Choose(condition=condition, then=then, orelse=orelse):
                pending += [condition, then, orelse]
            case s.CallNode(callee=callee, args=args, keywords=keywords):
                pending += [callee, *args, *(keyword.value for keyword in keywords)]
            case s.Index(value=value, index=index):
                pending += [value, index]
            case s.Attribute(value=value):
                pending.append(value)


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
    return found.union(*(indexed(inner.body) - _own(inner) for inner in inside(body)))


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
    found: set[str] = set()
    for statement in body:
        match statement:
            case s.BreakNode():
                found.add("break")
            case s.ContinueNode():
                found.add("continue")
            case s.IfNode(then=then, orelse=orelse):
                found |= jumps(then) | jumps(orelse)
    return found


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
    found: set[str] = set()
    for node in _expressions(body):
        match node:
            case (
                s.Index(value=s.Name(name=name)) | s.Attribute(value=s.Name(name=name), name="shape" | "flat" | "size")
            ):
                found.add(name)
            case s.Attribute(value=s.Name(name=name), name="ndim"):
                found.add(name)
            case s.CallNode(callee=s.Name(name="len"), args=(s.Name(name=name),)):
                found.add(name)
    return found | updated(body)


def stored(body: Iterable[s.Statement]) -> set[str]:
    """The names of arrays whose elements are assigned to."""
    found: set[str] = set()
    for statement in _all(body):
        match statement:
            case s.AssignNode(targets=targets):
                found |= {name for target in targets for name in _elements(target)}
            case s.Augment(target=target) | s.Annotate(target=target):
                found |= set(_elements(target))
    return found


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
    return (node for statement in _all(body) for part in _all_parts(statement) for node in _nodes(part))


def _all_parts(statement: s.Statement) -> tuple[s.Expression, ...]:
    """The expressions in a statement, targets included."""
    targets = statement.targets if isinstance(statement, s.AssignNode) else ()
    return (*_parts(statement), *targets)


def ends(body: s.Body) -> bool:
    """True if control never passes the statements: each path through them returns, or loops forever."""
    for statement in body:
        match statement:
            case s.ReturnNode():
                return True
            case s.IfNode(then=then, orelse=orelse) if ends(then) and ends(orelse):
                return True
    return False
