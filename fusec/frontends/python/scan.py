"""Which names a function assigns and reads, found in the syntax tree alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fusec.frontends.python import syntax as s


def assigned(body: Iterable[s.Statement]) -> dict[str, None]:
    """The names that statements assign anywhere, in order."""
    found: dict[str, None] = {}
    for statement in _all(body):
        match statement:
            case s.Assign(targets=targets):
                for target in targets:
                    found |= dict.fromkeys(_targets(target))
            case s.Augment(target=target) | s.Annotate(target=target) | s.For(target=target):
                found |= dict.fromkeys(_targets(target))
    return found


def exposed(body: Iterable[s.Statement]) -> set[str]:
    """The names that are read anywhere but in a loop that counts with them."""
    found: set[str] = set()
    for statement in body:
        for part in _parts(statement):
            found |= set(names(part))
        match statement:
            case s.If(then=then, orelse=orelse):
                found |= exposed(then) | exposed(orelse)
            case s.While(body=inner):
                found |= exposed(inner)
            case s.For(target=target, body=inner):
                found |= exposed(inner) - set(_targets(target))
    return found


def free(function: s.Function) -> dict[str, None]:
    """Names, plain or dotted, that a function reads and does not assign, annotations included."""
    own = {param.name for param in function.params} | set(assigned(function.body))
    found: dict[str, None] = {}
    roots = [part for statement in _all(function.body) for part in _parts(statement)]
    roots += [statement.annotation for statement in _all(function.body) if isinstance(statement, s.Annotate)]
    roots += [part for param in function.params for part in (param.annotation,) if part is not None]
    roots += [function.returns] if function.returns is not None else []
    for root in roots:
        found |= dict.fromkeys(name for name in dotted(root) if name.partition(".")[0] not in own)
    return found


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
            case s.Attribute():
                chain: list[str] = []
                inner: s.Expression = each
                while isinstance(inner, s.Attribute):
                    chain.append(inner.name)
                    inner = inner.value
                if isinstance(inner, s.Name):
                    yield ".".join((inner.name, *reversed(chain)))


def _all(body: Iterable[s.Statement]) -> Iterator[s.Statement]:
    """Statements with those inside them."""
    pending = list(body)[::-1]
    while pending:
        statement = pending.pop()
        yield statement
        match statement:
            case s.If(then=then, orelse=orelse):
                pending += [*orelse[::-1], *then[::-1]]
            case s.While(body=inner) | s.For(body=inner):
                pending += inner[::-1]


def _parts(statement: s.Statement) -> tuple[s.Expression, ...]:
    """The expressions that a statement itself reads."""
    match statement:
        case s.Assign(value=value, targets=targets):
            return (value, *(each for each in targets if not isinstance(each, (s.Name, s.Tuple))))
        case s.Augment(target=target, value=value):
            return (target, value)
        case s.Annotate(value=value) | s.Return(value=value):
            return () if value is None else (value,)
        case s.Evaluate(value=value) | s.If(condition=value) | s.While(condition=value) | s.For(iterable=value):
            return (value,)
        case s.Assert(condition=value):
            return (value,)
    return ()


def _targets(target: s.Expression) -> Iterator[str]:
    match target:
        case s.Name(name=name):
            yield name
        case s.Tuple(items=items):
            for item in items:
                yield from _targets(item)


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
            case s.Call(callee=callee, args=args, keywords=keywords):
                pending += [callee, *args, *(keyword.value for keyword in keywords)]
            case s.Index(value=value, index=index):
                pending += [value, index]
            case s.Attribute(value=value):
                pending.append(value)


def returned(body: Iterable[s.Statement]) -> list[int]:
    """How many values each return of a tuple has; nothing for returns of one value."""
    values = [each.value for each in _all(body) if isinstance(each, s.Return)]
    return [len(value.items) for value in values if isinstance(value, s.Tuple)]


def indexed(body: Iterable[s.Statement]) -> set[str]:
    """The names that stand before an index anywhere."""
    nodes = (each for statement in _all(body) for part in _parts(statement) for each in _nodes(part))
    return {each.value.name for each in nodes if isinstance(each, s.Index) and isinstance(each.value, s.Name)}


def arrays(body: Iterable[s.Statement]) -> set[str]:
    """The names that are used as arrays anywhere: indexed, asked for their shape, or updated by a function."""
    found: set[str] = set()
    for node in _expressions(body):
        match node:
            case (
                s.Index(value=s.Name(name=name)) | s.Attribute(value=s.Name(name=name), name="shape" | "flat" | "size")
            ):
                found.add(name)
            case s.Attribute(value=s.Name(name=name), name="ndim"):
                found.add(name)
            case s.Call(callee=s.Name(name="len"), args=(s.Name(name=name),)):
                found.add(name)
    return found | updated(body)


def stored(body: Iterable[s.Statement]) -> set[str]:
    """The names of arrays whose elements are assigned to."""
    found: set[str] = set()
    for statement in _all(body):
        match statement:
            case s.Assign(targets=targets):
                found |= {name for target in targets for name in _elements(target)}
            case s.Augment(target=target) | s.Annotate(target=target):
                found |= set(_elements(target))
    return found


def updated(body: Iterable[s.Statement], names: frozenset[str] = frozenset()) -> set[str]:
    """The arrays that atomic functions update, known by their names or by those that the text gives them."""
    found: set[str] = set()
    for node in _expressions(body):
        match node:
            case s.Call(callee=(s.Name(name=called) | s.Attribute(name=called)), args=(first, *_)):
                if called.startswith("atomic_") or called in names:
                    found |= {each for each in names_of(first) if each}
    return found


def names_of(node: s.Expression) -> Iterator[str]:
    """The array that an expression is: a name, or its elements in order, ``x.flat``."""
    match node:
        case s.Name(name=name) | s.Attribute(value=s.Name(name=name), name="flat"):
            yield name


def indices(body: Iterable[s.Statement]) -> dict[str, int]:
    """How many indices stand behind each name, the most of them if they differ."""
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
    targets = statement.targets if isinstance(statement, s.Assign) else ()
    return (*_parts(statement), *targets)


def ends(body: s.Body) -> bool:
    """True if control never gets past statements: each way through them returns, or loops for ever."""
    for statement in body:
        match statement:
            case s.Return():
                return True
            case s.If(then=then, orelse=orelse) if ends(then) and ends(orelse):
                return True
    return False
