"""Python functions to texts and constants: the place of the source, and the values of its free names.

No function is run: names are looked up where Python would find them, in its closure and its module.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import CodeType, FunctionType, MappingProxyType, ModuleType, UnionType
from typing import Any, Union, get_args, get_origin

import numpy as np

from fusec.arguments.operands import cure_for
from fusec.base import dtypes
from fusec.base.diagnostics import instance_of
from fusec.base.records import dataclass, replace
from fusec.base.source import SourceFile
from fusec.errors.python import NoSource, NotAFunction
from fusec.frontends.capture.frozen_globals import MAX_TABLE, NUMBERS, ROOTS, frozen
from fusec.frontends.capture.namespace import Opaque, OuterScopes, closure_of
from fusec.frontends.python import name_usage
from fusec.frontends.python import syntax as s
from fusec.frontends.python.annotations import ANY
from fusec.frontends.python.build import LAMBDA
from fusec.frontends.python.compound import KNOWN, PYTHONS_OWN
from fusec.frontends.python.definition import TEXT, Capture, FunctionText, number
from fusec.frontends.python.names import INTRINSICS
from fusec.frontends.python.parse import parse

PYTHON_TYPES = (bool, int, float, complex)
TOO_LARGE = f"a table has at most {MAX_TABLE} elements: pass it to a kernel of fusec.kernel, which indexes its arrays"
NO_CONSTANT: Capture = ("other", "an expression", "write a number")  # as a default
NOTHING: Mapping[str, object] = MappingProxyType({})
MAX_BITS = 4096  # of a captured integer; Python itself refuses to print much more


@dataclass(frozen=True, eq=False)
class Text:
    """A text of one or several functions, or of one lambda; names: what its free names stand for.

    meant: which of the functions, the last of that name; "" for the last of all.
    """

    text: str
    names: Mapping[str, object]
    file: str = TEXT
    meant: str = ""

    @property
    def functions(self) -> tuple[FunctionText, ...]:
        """Its functions, the one meant last. Raises syntax errors."""
        bare = self.text.strip()
        if re.match(r"lambda\b", bare):
            start = self.text.index(bare)
            return (FunctionText("", LAMBDA, self.file, 1, self.text, part=(start, start + len(bare))),)
        names = [tree.name for tree in parse(SourceFile(self.file, self.text))]
        meant = self.meant or names[-1]
        others = [name for name in dict.fromkeys(names) if name != meant]
        return tuple(FunctionText("", name, self.file, 1, self.text) for name in (*others, meant))


Missing = tuple[tuple[FunctionType, str], ...]


@dataclass(frozen=True, eq=False)
class Captured:
    """Functions by themselves: the last is meant, the others are what it calls. missing: names nothing defines yet."""

    functions: tuple[FunctionText, ...]
    missing: Missing = ()


@dataclass(frozen=True, eq=False)
class FileFunction(Opaque):
    """A function of a file that is not run, and what the names of the file stand for."""

    text: FunctionText
    names: Mapping[str, object]

    @property
    def functions(self) -> tuple[FunctionText, ...]:
        """The function, as `Text` has several."""
        return (self.text,)


@dataclass(frozen=True)
class Unusable(Opaque):
    """What a name of a file that is not run stands for, if a kernel cannot use it."""

    given: str
    cure: str


Origin = FunctionType | Text | Captured | FileFunction


def capture(origin: Origin, kept: Mapping[str, object]) -> Captured:
    """The texts of a function and of all it calls. kept: values that names had when the function was decorated.

    Raises NoSource, and the syntax errors of fusec.errors.python.
    """
    found = _Capturing()
    found.key_of(origin, kept)
    return Captured(tuple(found.done), tuple(found.missing))


def capture_roles(
    origins: Mapping[str, Origin], kept: Mapping[str, Mapping[str, object]]
) -> tuple[Captured, dict[str, str]]:
    """The texts of several functions that make one kernel, of all that they call, and the key of each by its role.

    kept: by role, as for `capture`. Raises as that does.
    """
    found = _Capturing()
    keys = {role: found.key_of(origin, kept.get(role, NOTHING)) for role, origin in origins.items()}
    return Captured(tuple(found.done), tuple(found.missing)), keys


def read(origin: Origin) -> s.FunctionNode:
    """The syntax tree of a function. Raises NoSource and syntax errors."""
    return _tree(_text_of(origin) if isinstance(origin, FunctionType) else origin.functions[-1])


def attributes(origin: Origin, tree: s.FunctionNode) -> dict[str, object]:
    """The numbers and tables that attributes of objects from outside stand for now, as in ``config.scale``."""
    if not isinstance(origin, FunctionType):
        return {}
    places = OuterScopes(closure_of(origin), origin.__globals__)
    found = {name: places.find(name) for name in name_usage.free(tree) if "." in name}
    return {
        name: frozen(value[0]) for name, value in found.items() if value is not None and isinstance(value[0], NUMBERS)
    }


def constant_of(value: object) -> Capture:
    """What a number or a tuple of numbers is to a kernel."""
    return ("other", _described(value), "write a tuple") if isinstance(value, list) else _Capturing().of(value)


def _tree(text: FunctionText) -> s.FunctionNode:
    found = text.tree
    if found.name != text.name:
        cure = "define the function again, or reload its module"
        raise NotAFunction(f"the source of '{text.name}' has changed", cure).at()
    return found


def _text_of(function: FunctionType) -> FunctionText:
    """The source of a function as it stands in its file. Raises NoSource."""
    name = function.__name__
    is_lambda = name == "<lambda>"
    try:
        lines, line = inspect.findsource(function) if is_lambda else inspect.getsourcelines(function)
        if is_lambda:
            return _lambda_of(function, "".join(lines))
    except (OSError, TypeError, IndexError, SyntaxError) as problem:
        reason = "it was typed at a prompt, or its file is gone" if isinstance(problem, OSError) else str(problem)
        raise NoSource("a lambda" if is_lambda else f"'{name}'", reason, "f" if is_lambda else name).at() from None
    return FunctionText(name, name, _shown(function.__code__.co_filename), max(line, 1), "".join(lines))


def _lambda_of(function: FunctionType, file: str) -> FunctionText:
    """A lambda in the text of its file, told from others by the places in it. Raises NotAFunction."""
    code = function.__code__
    found = [each for each in _lambdas(file) if each.lineno == code.co_firstlineno]
    if len(found) > 1:
        found = _meant(found, code)
    if len(found) != 1:
        cure = "put each lambda on a line of its own, or define the function with def"
        raise NotAFunction("several lambdas share a line, so it is unknown which of them is meant", cure).at()
    return lambda_text(found[0], file, _shown(code.co_filename))


def _meant(lambdas: Sequence[ast.Lambda], code: CodeType) -> list[ast.Lambda]:
    """Those that a code object may come from: the innermost one around all that it names a place of.

    Python 3.12 knows no places in a lambda that returns a constant: these are told by parameters and constant.
    """
    places = [
        ((line, start), (end_line, end))
        for line, end_line, start, end in code.co_positions()
        if line is not None and end_line is not None and start is not None and end is not None and start != end
    ]
    if not places:
        names = code.co_varnames[: code.co_argcount]
        return [
            each
            for each in lambdas
            if isinstance(each.body, ast.Constant)
            and repr(each.body.value) in map(repr, code.co_consts)
            and tuple(arg.arg for arg in each.args.args) == names
        ]
    around = []
    for each in lambdas:
        body = each.body
        begin, end = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
        if all(begin <= first and last <= end for first, last in places):
            around.append((begin, each))
    return [max(around, key=operator.itemgetter(0))[1]] if around else []


def lambda_text(node: ast.Lambda, file: str, name: str) -> FunctionText:
    """A lambda of a file's text as a function's; `name` is the file's."""
    lines = file.split("\n")[node.lineno - 1 : node.end_lineno]
    assert node.end_col_offset is not None, "nodes of a text know where they end"
    start = len(lines[0].encode()[: node.col_offset].decode())
    end = sum(len(line) + 1 for line in lines[:-1]) + len(lines[-1].encode()[: node.end_col_offset].decode())
    return FunctionText(LAMBDA, LAMBDA, name, node.lineno, "\n".join(lines) + "\n", part=(start, end))


@lru_cache(maxsize=8)
def _lambdas(file: str) -> tuple[ast.Lambda, ...]:
    """All lambdas of a file."""
    return tuple(node for node in ast.walk(ast.parse(file)) if isinstance(node, ast.Lambda))


def _shown(file: str) -> str:
    """A path as the user would write it: relative if it lies below the working directory."""
    here = os.getcwd() + os.sep
    return file[len(here) :] if file.startswith(here) else file


class _Capturing:
    """Walks from a function to what it calls; callees before callers in `done`."""

    def __init__(self) -> None:
        self.keys: dict[tuple[int, int], str] = {}
        self.origins: list[object] = []  # kept alive, since `keys` goes by identity
        self.done: list[FunctionText] = []
        self.missing: list[tuple[FunctionType, str]] = []

    def key_of(self, origin: Origin, kept: Mapping[str, object] = NOTHING) -> str:
        """The key of a function, which is captured if it has not been; kept: as for `capture`."""
        if not isinstance(origin, FunctionType):
            kept = NOTHING
        known = self.keys.get((id(origin), id(kept)))
        if known is not None:
            return known
        match origin:
            case Captured():
                return self._known(origin)
            case Text() | FileFunction():
                return self._of_text(origin)
        text = _text_of(origin)
        (key,) = self._new_keys(origin, [text.name], kept)
        tree = _tree(text)
        namespace = OuterScopes(kept, closure_of(origin), origin.__globals__, _annotations(origin, tree))
        self.missing += [(origin, name) for name in name_usage.free(tree) if _is_missing(name, namespace)]
        params = [param.name for param in tree.params]
        given = origin.__defaults__ or ()
        pairs = zip(params[len(params) - len(given) :], given, strict=True)
        defaults = tuple((name, self.of(value)) for name, value in pairs)
        self.done.append(replace(text, key=key, names=self._names(tree, namespace), defaults=defaults))
        return key

    def _new_keys(self, origin: object, names: Sequence[str], kept: Mapping[str, object] = NOTHING) -> list[str]:
        """Keys for the functions of an origin, whose own is the last."""
        keys = [f"{name}@{len(self.keys)}.{at}" for at, name in enumerate(names)]
        self.keys[id(origin), id(kept)] = keys[-1]
        self.origins.append((origin, kept))
        return keys

    def _known(self, origin: Captured) -> str:
        """Functions captured before, under new keys."""
        keys = self._new_keys(origin, [each.name for each in origin.functions])
        new = {each.key: key for each, key in zip(origin.functions, keys, strict=True)}
        for each in origin.functions:
            names = tuple((name, _renamed(value, new)) for name, value in each.names)
            self.done.append(replace(each, key=new[each.key], names=names))
        return keys[-1]

    def _of_text(self, origin: Text | FileFunction) -> str:
        """Functions of a text that is not run, which know each other by their names."""
        functions = origin.functions
        names = [each.name for each in functions]
        keys = dict(zip(names, self._new_keys(origin, names), strict=True))
        namespace = OuterScopes({}, {}, origin.names)
        for each in functions:
            tree = _tree(each)
            defaults = [(param.name, param.default) for param in tree.params if param.default is not None]
            known = tuple((name, ("function", keys[name])) for name in name_usage.free(tree) if name in keys)
            others = tuple(pair for pair in self._names(tree, namespace) if pair[0] not in keys)
            given = tuple((name, _constant(node) or NO_CONSTANT) for name, node in defaults)
            self.done.append(replace(each, key=keys[each.name], names=(*known, *others), defaults=given))
        return keys[names[-1]]

    def _names(self, tree: s.FunctionNode, namespace: OuterScopes) -> tuple[tuple[str, Capture], ...]:
        """What the free names of a function stand for; for those that nothing defines, one that is alike."""
        found: list[tuple[str, Capture]] = []
        find, known = namespace.find, [name for place in namespace.places for name in place if name[:1] != "_"]
        known += [param.name for param in tree.params]
        for name in name_usage.free(tree):
            value = find(name)
            if value is not None:
                captured = self.of(value[0])
                if captured[0] != "other" or "." not in name or self._is_object(name, namespace):
                    found.append((name, captured))
            elif "." in name:
                guess = namespace.like(name) if self._is_object(name, namespace) else ""
                found += [(name, ("missing", guess))] if guess else []
            elif name not in KNOWN and not hasattr(builtins, name):
                guess = namespace.closest(name, known, self._is_usable)
                found += [(name, ("missing", guess))] if guess else []
        return tuple(found)

    def _is_usable(self, value: object) -> bool:
        return isinstance(value, FunctionType) or self.of(value)[0] != "other"

    def _is_object(self, dotted: str, namespace: OuterScopes) -> bool:
        """Whether the owner of an attribute is an object that kernels know nothing about."""
        owner = namespace.find(dotted.rpartition(".")[0])
        return owner is not None and not isinstance(owner[0], Opaque) and self.of(owner[0])[0] == "other"

    def of(self, value: object) -> Capture:
        """What a value is to a kernel."""
        if value is None:
            return ("none",)
        if isinstance(value, FileFunction):
            return ("function", self.key_of(value))
        if isinstance(value, Unusable):
            return ("other", value.given, value.cure)
        if isinstance(value, complex) and not isinstance(value, np.generic):
            return number(value)
        if isinstance(value, (bool, int, float)) and type(value) in PYTHON_TYPES:
            if isinstance(value, int) and value.bit_length() > MAX_BITS:
                return ("other", f"an integer of {value.bit_length()} bits", "kernels compute with at most 64")
            return number(value)
        if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
            return _number(value)
        if isinstance(value, (tuple, list)):
            if len(value) > MAX_TABLE:
                return ("other", f"{_described(value)} of {len(value)}", TOO_LARGE)
            items = tuple(self.of(item) for item in value)
            wrong = next((each for each in items if each[0] == "other"), None)
            return ("tuple", items) if wrong is None else ("other", f"{_described(value)} with {wrong[1]}", wrong[2])
        if isinstance(value, np.ndarray):
            return _table(value)
        if isinstance(value, ModuleType):
            return ("module", _module(value))
        return self._type_or_function(value)

    def _type_or_function(self, value: object) -> Capture:
        if isinstance(value, type) and value in PYTHON_TYPES:
            return ("type", value.__name__)
        if isinstance(value, (np.dtype, type)) and not (isinstance(value, type) and not issubclass(value, np.generic)):
            found = _dtype(value)
            if found is not None:
                return ("numpy type", found)
        if isinstance(value, dtypes.DType):
            return ("numpy type", value.name)
        if value is np.dtype:
            return ("builtin", "dtype", False)
        origin = getattr(value, "__fusec_origin__", None)
        if isinstance(origin, (FunctionType, Text, Captured)):
            return ("function", self.key_of(origin, getattr(value, "kept", NOTHING)))
        name, root = _named(value)
        if name in INTRINSICS and getattr(value, "__module__", "") == "fusec.language.intrinsics":
            return ("intrinsic", name)
        own = name in PYTHONS_OWN.get(root, ())
        if own or (root in ROOTS and name in KNOWN):
            return ("builtin", name, own)
        if isinstance(value, FunctionType) and (root not in ROOTS or value.__module__ == "fusec.random"):
            return ("function", self.key_of(value))
        cure = "numbers, dtypes, functions, tuples and lists of them, and arrays can be used from outside"
        return ("other", _described(value), cure, _is_array_class(value))


MOST_ALIASES = 8  # that stand for each other; an object may have any attribute, without end


def _is_array_class(value: object) -> bool:
    """Whether a value is an annotation of arrays: a class of them, or an alias, ``Image = NDArray[np.float32]``."""
    for _ in range(MOST_ALIASES):
        if get_origin(value) in (Union, UnionType):
            return any(map(_is_array_class, get_args(value)))
        value = getattr(value, "__value__", getattr(value, "__origin__", value))  # of ``type Image = ...``, of Image[T]
    names = {each.__name__ for each in value.__mro__[:-1]} if isinstance(value, type) else ()
    return value is Any or not ANY.isdisjoint(names)


def _annotations(function: FunctionType, tree: s.FunctionNode) -> dict[str, object]:
    """What names in annotations stood for when Python came to the function: no closure holds them."""
    try:
        known = function.__annotations__
    except NameError:  # Python 3.14 evaluates them here
        return {}
    nodes = {**{param.name: param.annotation for param in tree.params}, "return": tree.returns}
    found = {name_usage.dotted_name(node): known.get(name) for name, node in nodes.items() if node is not None}
    return {name: value for name, value in found.items() if name and value is not None and not isinstance(value, str)}


def _is_missing(name: str, namespace: OuterScopes) -> bool:
    """Whether nothing defines a name yet, or the attribute of one."""
    first = name.partition(".")[0]
    if namespace.find(first) is None:
        return first not in KNOWN and not hasattr(builtins, first)
    return "." in name and namespace.find(name) is None


def _number(value: object) -> Capture:
    array = np.asarray(value)
    dtype = dtypes.from_numpy(array.dtype)
    if dtype is None:
        return ("other", f"a value of dtype {array.dtype}", "convert it, e.g. to np.float64")
    return ("numpy", dtype.name, int.from_bytes(array.tobytes(), "little"))


def _table(value: np.ndarray[Any, Any]) -> Capture:
    """An array of numbers as it is now."""
    shown = f"an array of shape {value.shape}"
    if value.size > MAX_TABLE:
        return ("other", shown, TOO_LARGE)
    if type(value) not in (np.ndarray, np.memmap):
        return ("other", _described(value), "convert it: x.filled() of a masked array, np.asarray(x) of others")
    dtype = dtypes.from_numpy(value.dtype.newbyteorder("="))
    if dtype is None:
        return ("other", f"an array of dtype {value.dtype}", cure_for(value.dtype))
    return ("array", dtype.name, value.shape, np.ascontiguousarray(value, dtype.numpy).tobytes().hex())


def _module(value: ModuleType) -> str:
    name = value.__name__
    return "math" if name in ("math", "cmath") else "special" if name.endswith(".special") else name


def _dtype(value: object) -> str | None:
    try:
        found = dtypes.from_numpy(value)  # type: ignore[arg-type]
    except TypeError:
        return None
    return None if found is None else found.name


def _named(value: object) -> tuple[str, str]:
    """A function's name and the library it is from."""
    name = getattr(value, "__name__", None) or getattr(value, "name", "")
    module = "numpy" if isinstance(value, np.ufunc) else getattr(value, "__module__", None) or type(value).__module__
    return str(name), str(module).partition(".")[0]


def _described(value: object) -> str:
    return instance_of(value)


def _renamed(value: Capture, new: Mapping[str, str]) -> Capture:
    match value:
        case ("function", key):
            return ("function", new.get(key, key))
        case ("tuple", items):
            return ("tuple", tuple(_renamed(item, new) for item in items))
    return value


def _constant(node: s.Expression | None) -> Capture | None:
    """A default in a text that is not run: a number, True, False, None, or a tuple of them."""
    match node:
        case s.Number(value=value):
            return number(value)
        case s.Constant(value=None):
            return ("none",)
        case s.Constant(value=bool() as truth):
            return number(truth)
        case s.Prefix(op="-", operand=s.Number(value=int() | float() as value)):
            return number(-value)
        case s.Tuple(items=items):
            found = [_constant(item) for item in items]
            return None if None in found else ("tuple", tuple(found))
    return None
