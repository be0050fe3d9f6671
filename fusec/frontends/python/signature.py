"""The declarations of a function: its parameters, and names for its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from fusec.errors.python import BadParameter
from fusec.frontends.python import name_usage
from fusec.frontends.python import syntax as s
from fusec.frontends.python.definition import Capture, FunctionText
from fusec.frontends.python.name_usage import dotted_name


def outputs(functions: Sequence[FunctionText]) -> tuple[tuple[str, ...], bool]:
    """Names for the results of the last function, and whether they come as a tuple.

    How many there are stands in its text, or in that of a function whose tuple it returns.
    """
    tree = functions[-1].tree
    count = _Counting({each.key: each for each in functions}).of_function(functions[-1].key)
    taken = {param.name for param in tree.params}
    names = ["out"] if count == 0 else [f"out{at}" for at in range(count)]
    return tuple(f"{name}_" if name in taken else name for name in names), count > 0


class _Counting:
    """How many values functions return in a tuple; 0 for one that is none. No function is lowered for it."""

    def __init__(self, functions: Mapping[str, FunctionText]) -> None:
        self.functions = functions
        self.active: set[object] = set()

    def of_function(self, key: str) -> int:
        """Of what one of the functions returns."""
        text = self.functions[key]
        return self._once(key, lambda: self._of_body(text.tree.body, text))

    def _once(self, what: object, count: Callable[[], int]) -> int:
        """A count that does not ask for itself again."""
        if what in self.active:
            return 0
        self.active.add(what)
        try:
            return count()
        finally:
            self.active.remove(what)

    def _of_body(self, body: s.Body, text: FunctionText) -> int:
        return max((self._of(value, body, text) for value in name_usage.returned(body)), default=0)

    def _of(self, value: s.Expression, body: s.Body, text: FunctionText) -> int:
        match value:
            case s.Tuple(items=items):
                return len(items)
            case s.Choose(then=then, orelse=orelse):
                return self._of(then, body, text) or self._of(orelse, body, text)
            case s.Name(name=name) if name in name_usage.assigned(body):
                return self._once(
                    (text.key, name),
                    lambda: max((self._of(each, body, text) for each in name_usage.values_of(name, body)), default=0),
                )
            case s.Name(name=name):
                return _length(dict(text.names).get(name))
            case s.Index(value=s.Name(name=name)):
                what, *rest = dict(text.names).get(name) or ("",)
                rows = rest[0] if what == "tuple" else ()
                return _length(rows[0]) if isinstance(rows, tuple) and rows else 0
            case s.CallNode(callee=callee):
                return self._of_call(dotted_name(callee) or "", body, text)
        return 0

    def _of_call(self, callee: str, body: s.Body, text: FunctionText) -> int:
        inner = next((each for each in reversed(name_usage.inside(body)) if each.name == callee), None)
        if inner is not None:
            return self._once(id(inner), lambda: self._of_body(inner.body, text))
        what, *rest = dict(text.names).get(callee, ("builtin", callee.rpartition(".")[2]))
        if what == "function":
            return self.of_function(str(rest[0]))
        return TUPLES.get(str(rest[0]), 0) if what == "builtin" else 0


def _length(given: Capture | None) -> int:
    """The items of a tuple from outside; 0 for what is none."""
    what, *rest = given or ("",)
    return len(rest[0]) if what == "tuple" and isinstance(rest[0], tuple) else 0


TUPLES = {"divmod": 2}  # functions of NumPy and Python that return several values


def check(tree: s.FunctionNode, reserved: Sequence[str]) -> None:
    """Raise BadParameter for parameters that calls could not tell from their own."""
    seen: set[str] = set()
    for param in tree.params:
        if param.name in reserved:
            cure = "calls already have an argument of that name: rename it"
            raise BadParameter(f"a parameter cannot be called '{param.name}'", cure).at(param.span)
        if param.name in seen:
            raise BadParameter(f"two parameters are called '{param.name}'", "rename one").at(param.span)
        seen.add(param.name)
    if not tree.params:
        cure = "a function of elements takes at least one"
        raise BadParameter(f"'{tree.name}' has no parameters", cure).at(tree.span)
