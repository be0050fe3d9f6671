"""Stand-ins for the user's objects, modules and classes in a trace: they record which attributes the function reads."""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from threading import local
from types import FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

from fusec.base.diagnostics import with_article
from fusec.errors import FusecError
from fusec.errors.fusing import AltersOutside
from fusec.fusion.outside import reads
from fusec.fusion.outside.constants import KEPT, Traced, is_of_library
from fusec.fusion.outside.kept import Kept
from fusec.fusion.outside.reads import ABSENT, Location
from fusec.fusion.trace.trace import here, recorded_by
from fusec.fusion.trace.tracer import Tracer

HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class that is no static one of C code
BASE_TYPE = 1 << 10  # Py_TPFLAGS_BASETYPE: a class that may have subclasses
ROOTS = (SimpleNamespace, ModuleType, object)
SKIPPED = frozenset(
    "__init_subclass__ __set_name__ __class_getitem__ __getattribute__ __setattr__ __delattr__ __del__ __new__".split()
)
ASKED = """add radd sub rsub mul rmul truediv rtruediv floordiv mod pow rpow neg abs matmul eq ne lt le gt ge getitem
setitem iter len contains call bool float int index enter exit array str format""".split()


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _in_class(kind: type, name: str) -> Any:
    """What a class or one of its bases has under a name, as it stands there; ABSENT if nothing."""
    return next((vars(each)[name] for each in kind.__mro__ if name in vars(each)), ABSENT)


def is_readable(kind: type) -> bool:
    """Whether instances of a class keep their whole state in attributes, which Python finds in its normal way."""
    if issubclass(kind, BaseException) or isinstance(_in_class(kind, "__getattribute__"), FunctionType):
        return False
    if not (kind.__flags__ & type(kind).__flags__ & BASE_TYPE):  # classes of C code that have no subclasses
        return False
    return all(each.__flags__ & HEAP_TYPE or each in ROOTS for each in kind.__mro__)


# --- classes -------------------------------------------------------------------------------------------------------


def class_standing_in(recording: Any, origin: type) -> type:
    """A class that records reads of its attributes; the class itself if it is not the user's."""
    if is_of_library(origin) or not is_readable(origin) or issubclass(origin, (ModuleType, Enum)):
        return origin
    if origin in recording.classes:
        return recording.classes[origin]  # type: ignore[no-any-return]
    place = Location(reads.GIVEN, origin, None, ("class", id(origin)))
    at = recording.note(place, reads.SAME, origin)

    def read(name: str) -> Any:
        return recording.seen(place.attribute(at, name), getattr(origin, name))

    def get(kind: type, name: str) -> Any:
        raw = ABSENT if _is_special(name) else _in_class(origin, name)
        if isinstance(raw, (FunctionType, staticmethod, classmethod)):
            _note_in_class(recording, origin, name, raw)
            called = recording.called(raw if isinstance(raw, FunctionType) else raw.__func__)
            return MethodType(called, kind) if isinstance(raw, classmethod) else called
        if raw is ABSENT and not _is_special(name) and not hasattr(origin, name):
            recording.lacks(place.attribute(at, name))
        if raw is ABSENT or hasattr(type(raw), "__get__"):
            return type.__getattribute__(kind, name)
        return read(name)

    def store(_: type, name: str, *value: Any) -> None:
        del value
        raise AltersOutside(f"the attribute '{name}' of the class {origin.__name__}").at(here())

    meta = type.__new__(type, type(origin).__name__, (type(origin),), {
        "__getattribute__": get, "__setattr__": store, "__delattr__": store,
        "__instancecheck__": lambda _, value: isinstance(value, origin),
        "__subclasscheck__": lambda kind, other: _is_subclass(other, origin, kind),
        "__eq__": lambda kind, other: other is origin or other is kind,
        "__hash__": lambda _: hash(origin),
    })  # fmt: skip
    names = {"__module__": origin.__module__, "__qualname__": origin.__qualname__, "__doc__": origin.__doc__}
    made: type = type.__new__(meta, origin.__name__, (_Unannounced, origin), names)
    recording.classes[origin] = recording.stands_for(made, origin, at)
    for each in reversed(origin.__mro__):
        for name, raw in () if is_of_library(each) else vars(each).items():
            if name not in SKIPPED and (not _is_special(name) or isinstance(raw, FunctionType)):
                note = functools.partial(_note_in_class, recording, origin, name, raw)
                type.__setattr__(made, name, _of_instances(recording, raw, functools.partial(read, name), note))
    return made


def _is_subclass(other: type, origin: type, stand_in: type) -> bool:
    """Whether a class is below the origin of a stand-in; False if an abstract origin asks that of its subclasses."""
    if stand_in in _asked.kinds:
        return False
    _asked.kinds += (stand_in,)
    try:
        return issubclass(other, origin)
    finally:
        _asked.kinds = _asked.kinds[:-1]


class _Asked(local):
    """Stand-ins of which a thread asks for subclasses just now."""

    kinds: tuple[type, ...] = ()


_asked = _Asked()


def _note_in_class(recording: Any, kind: type, name: str, raw: Any) -> None:
    """Have calls expect that a class still has a method or a property that the function uses."""
    path = ("class", id(kind), name, "as it stands")
    if kind in recording.classes and path not in recording.known:
        recording.known[path] = raw
        _, _, at = recording.origins[id(recording.classes[kind])]
        recording.note(Location(reads.ATTRIBUTE, at, name, path), reads.METHOD, getattr(raw, "__func__", raw))


class _Unannounced:
    """A base of stand-ins, of whose making their other bases hear nothing."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        pass


class _Gone:
    """The other base of stand-ins after the trace."""


def let_go(made: type) -> None:
    """Have a class of the user's not name its stand-in among its subclasses any more."""
    with suppress(TypeError):  # of a class with slots, which cannot
        type.__setattr__(made, "__bases__", (_Unannounced, _Gone))


def _of_instances(recording: Any, raw: Any, read: Callable[[], Any], note: Callable[[], None]) -> Any:
    """What instances that the function makes find in their class, and special methods of all; noted when it is used."""
    match raw:
        case FunctionType():
            return _Method(recording.called(raw), note)
        case staticmethod() | classmethod():
            return _Method(type(raw)(recording.called(raw.__func__)), note)
        case property():
            parts = (raw.fget, raw.fset, raw.fdel)
            get, set_, delete = (None if each is None else _noted(recording.called(each), note) for each in parts)
            return property(get, set_, delete)
        case functools.cached_property():
            made: Any = functools.cached_property(_noted(recording.called(raw.func), note))
            made.attrname = raw.attrname
            return made
        case functools._lru_cache_wrapper():
            return _Method(Kept(recording, raw), note)
    return raw if hasattr(type(raw), "__get__") else _ClassAttribute(read)


def _noted(function: Callable[..., Any], note: Callable[[], None]) -> Callable[..., Any]:
    """A function of a property, which is noted when it is called."""

    def called(*args: Any) -> Any:
        note()
        return function(*args)

    return called


class _Method:
    """A method of a class, which is noted when it is looked up."""

    def __init__(self, found: Any, note: Callable[[], None]) -> None:
        self.found, self.note = found, note

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        self.note()
        return self.found.__get__(instance, owner)


class _ClassAttribute:
    """An attribute of a class, seen through an instance that has none of its own."""

    def __init__(self, read: Callable[[], Any]) -> None:
        self.read = read

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self.read()


class Super:
    """super() in a function whose reads are recorded: the methods that it finds are recorded too."""

    def __init__(self, recording: Any, *args: Any) -> None:
        if not args:
            frame = sys._getframe(1)
            args = (frame.f_locals["__class__"], frame.f_locals[frame.f_code.co_varnames[0]])
        self._state = recording, super(*args)

    def __getattribute__(self, name: str) -> Any:
        recording, found = object.__getattribute__(self, "_state")
        owner, kind = found.__self__, found.__self_class__
        bases = iter(kind.__mro__)
        any(each is found.__thisclass__ for each in bases)  # skips it and what is before
        base = next((each for each in bases if name in vars(each)), object)
        raw = vars(base).get(name, ABSENT)
        function = raw.__func__ if isinstance(raw, (staticmethod, classmethod)) else raw
        place = Location(reads.GLOBAL, vars(base), name, ("super", id(base), name))
        if not isinstance(function, (FunctionType, property, Traced)):
            is_data = raw is not ABSENT and not hasattr(type(raw), "__get__")
            return recording.seen(place, raw) if is_data else getattr(found, name)
        if place.path not in recording.known:
            recording.known[place.path] = raw
            recording.note(place, reads.SAME, raw)
        if isinstance(raw, property):
            return recording.called(raw.fget)(owner)
        if isinstance(raw, classmethod):
            owner = kind
        elif isinstance(raw, staticmethod) or isinstance(owner, type):
            return recording.called(function)
        return MethodType(recording.called(function), owner)


# --- objects -------------------------------------------------------------------------------------------------------


class _AttributeReader:
    """Looks up attributes of one object as Python does, and notes them."""

    def __init__(self, recording: Any, place: Location, at: int, value: Any, base: type) -> None:
        self.recording, self.place, self.at, self.value, self.base = recording, place, at, value, base
        self.kind = type(value)

    def get(self, stand_in: Any, name: str) -> Any:
        """An attribute. Raises AttributeError."""
        if name == "__class__":
            return self.base
        if (self.at, name) in self.recording.attributes:
            return self.recording.attributes[self.at, name]
        raw = _in_class(self.kind, name)
        is_own = name in getattr(self.value, "__dict__", ())
        if isinstance(raw, property):
            _note_in_class(self.recording, self.kind, name, raw)
            if raw.fget is None:
                raise AttributeError(f"property '{name}' of '{self.kind.__name__}' object has no getter")
            return self.recording.called(raw.fget)(stand_in)
        if is_own and isinstance(raw, functools.cached_property):  # asked for elsewhere, Python would compute it
            return self.recording.seen(
                Location(reads.ITEM, self.names(), name, (*self.place.path, name)), vars(self.value)[name]
            )
        if is_own or name == "__dict__" or isinstance(raw, MemberDescriptor):
            return self.read(name)
        return self.of_class(stand_in, name, raw)

    def read(self, name: str) -> Any:
        """What the object itself has now. Raises AttributeError, which calls then expect."""
        place = self.place.attribute(self.at, name)
        value = getattr(self.value, name, ABSENT)
        if value is ABSENT:
            self.recording.lacks(place)
            raise AttributeError(f"'{self.kind.__name__}' object has no attribute '{name}'")
        return self.recording.seen(place, value)

    def of_class(self, stand_in: Any, name: str, raw: Any) -> Any:
        """What the object has of its class."""
        recording = self.recording
        if isinstance(raw, (FunctionType, staticmethod, classmethod)):
            function = raw if isinstance(raw, FunctionType) else raw.__func__
            place = Location(reads.ATTRIBUTE, self.at, name, (*self.place.path, name, "function"))
            if not _is_special(name) and place.path not in recording.known:
                recording.known[place.path] = function
                recording.note(place, reads.METHOD, function)
            called = recording.called(function)
            if isinstance(raw, staticmethod):
                return called
            return MethodType(called, stand_in if isinstance(raw, FunctionType) else self.base)
        if isinstance(raw, Traced):
            return functools.partial(recording.called(raw), stand_in)
        if isinstance(raw, functools.cached_property):
            return self.computed_once(stand_in, name, raw)
        if isinstance(raw, KEPT):
            _note_in_class(self.recording, self.kind, name, raw)
            return functools.partial(Kept(recording, raw), stand_in)
        if isinstance(_in_class(type(raw), "__get__"), FunctionType):
            return self.by_descriptor(name, "__get__", stand_in, self.base)
        if raw is not ABSENT and hasattr(type(raw), "__get__"):
            return raw.__get__(stand_in, self.base)
        return self.read(name)

    def computed_once(self, stand_in: Any, name: str, raw: functools.cached_property[Any]) -> Any:
        """A property whose value the object keeps: computed as Python does, unless from what the function assigned."""
        recording = self.recording
        _note_in_class(recording, self.kind, name, raw)
        if all(at != self.at for at, _ in recording.attributes):
            with recorded_by(None):
                getattr(self.value, name)
            return self.read(name)
        lookup = operator.methodcaller("get", name, ABSENT)
        recording.lacks(Location(reads.CALL, lookup, ((self.names(), None),), (*self.place.path, name)))
        found = recording.attributes[self.at, name] = recording.called(raw.func)(stand_in)
        return found

    def names(self) -> int:
        """The row that finds the attributes that the object itself has."""
        return self.recording.note(self.place.attribute(self.at, "__dict__"), reads.TYPE, dict)  # type: ignore[no-any-return]

    def by_descriptor(self, name: str, method: str, *args: Any) -> Any:
        """Call a method of a descriptor whose class is the user's."""
        owner = next(vars(each) for each in self.kind.__mro__ if name in vars(each))
        place = Location(reads.GLOBAL, owner, name, ("class", id(self.kind), name))
        stand_in, kind = self.recording.seen(place, owner[name]), type(owner[name])
        function = _in_class(kind, method)
        _note_in_class(self.recording, kind, method, function)
        return self.recording.called(function)(stand_in, *args)

    def assign(self, stand_in: Any, name: str, value: Any) -> None:
        """Note an attribute that the function sets. Raises AltersOutside where a class has its own way of it."""
        raw = _in_class(self.kind, name)
        if isinstance(raw, property) and raw.fset is not None:
            _note_in_class(self.recording, self.kind, name, raw)
            self.recording.called(raw.fset)(stand_in, value)
            return
        if isinstance(_in_class(type(raw), "__set__"), FunctionType):
            self.by_descriptor(name, "__set__", stand_in, value)
            return
        if isinstance(_in_class(self.kind, "__setattr__"), FunctionType) or isinstance(raw, property):
            self.delete(stand_in, name)
        is_set = (self.at, name) in self.recording.attributes
        if is_set or self.recording.known.get((*self.place.path, name), ABSENT) is not value:
            self.recording.attributes[self.at, name] = value

    def delete(self, _: Any, name: str) -> None:
        """Refuse it."""
        raise AltersOutside(f"the attribute '{name}' of {with_article(self.kind.__name__)}").at(here())


STANDS_IN = "__fusec_stands_in__"
MemberDescriptor = type(type("_Slotted", (), {"__slots__": ("x",)}).__dict__["x"])


def object_standing_in(recording: Any, place: Location, at: int, value: Any) -> Any:
    """An object that records reads of its attributes; None if the attributes are not its whole state."""
    kind = type(value)
    if not is_readable(kind):
        return None
    base = class_standing_in(recording, kind)
    reader = _AttributeReader(recording, place, at, value, base)
    names: dict[str, Callable[..., Any]] = {
        "__getattribute__": reader.get,
        "__setattr__": reader.assign,
        "__delattr__": reader.delete,
    }
    own: dict[str, Any] = {STANDS_IN: True} | {name: _through(function) for name, function in names.items()}
    if kind is SimpleNamespace:
        own |= {"__eq__": lambda self, other: vars(self) == vars(other), "__hash__": None}
    bases = () if issubclass(base, _Unannounced) else (_Unannounced,)
    made = type.__new__(type(base), kind.__name__, (*bases, base), {"__module__": kind.__module__, **own})
    root = next(each for each in kind.__mro__ if each in ROOTS)
    try:
        found: Any = root.__new__(made)
    except TypeError:  # a class of C code that makes its instances itself
        return None
    return recording.stands_for(found, value, at)


def _through(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that becomes a method; bound ones do not."""
    return lambda *args: function(*args)


class _Kinds(type):
    """What type is to a function whose reads are recorded."""

    def __call__(cls, *args: Any, **options: Any) -> Any:
        """The type that a value has without fuse, or a new class."""
        if cls is not TypeStandIn:
            return super().__call__(*args, **options)
        if len(args) != 1 or options:
            return type(*args, **options)
        kind = type(args[0])
        if kind is Tracer or STANDS_IN in vars(kind):
            return args[0].__class__
        return TypeStandIn if kind is type else kind

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, type) if cls is TypeStandIn else super().__instancecheck__(value)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, type) if cls is TypeStandIn else super().__subclasscheck__(other)


class TypeStandIn(type, metaclass=_Kinds):
    """type() in a function whose reads are recorded."""


# --- what cannot be read -------------------------------------------------------------------------------------------


class Refused:
    """A stand-in for an object from outside that cannot be read again; it raises as soon as the function uses it."""

    def __init__(self, problem: FusecError) -> None:
        object.__setattr__(self, "_problem", problem)

    def __getattribute__(self, name: str) -> Any:
        raise object.__getattribute__(self, "_problem")


def _refuse(self: Refused, *_: Any) -> Any:
    raise object.__getattribute__(self, "_problem")


for _name in ASKED:
    setattr(Refused, f"__{_name}__", _refuse)
