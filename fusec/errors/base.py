"""The machinery of user errors: a value that describes a mistake, and the exception that carries it."""

from __future__ import annotations

from typing import ClassVar, Self, dataclass_transform

from fusec.base import diagnostics
from fusec.base.source import Span

__all__ = [
    "FusecAttributeError",
    "FusecError",
    "FusecIndexError",
    "FusecKeyError",
    "FusecMemoryError",
    "FusecOverflowError",
    "FusecRuntimeError",
    "FusecSyntaxError",
    "FusecTypeError",
    "FusecValueError",
    "FusecWarning",
]
PUBLIC = "fusec"  # the module that tracebacks name


class FusecError(Exception):
    """A mistake of the user. `error` describes it; `span` is its place in the text, if it has one.

    >>> try:
    ...     fusec.ElementwiseKernel("T x", "T y", "y = 2 * z")
    ... except fusec.FusecError as error:
    ...     print(error.code, error.hint)
    F135 declare it, or make it a parameter; known here: i, n, x, y
    """

    __module__ = PUBLIC

    def __init_subclass__(cls) -> None:
        cls.__module__ = PUBLIC

    def __init__(self, error: UserError, span: Span | None = None) -> None:
        Exception.__init__(self, error, span)  # not that of a SyntaxError or an AxisError, which read their arguments
        self.error = error
        self.span = span

    @property
    def code(self) -> str:
        """The code that ``fusec explain`` takes, such as F204."""
        return self.error.code

    @property
    def hint(self) -> str:
        """What to do instead; "" if there is no advice."""
        return self.error.text("hint")

    def __repr__(self) -> str:
        cure = f"; hint: {self.hint}" if self.hint else ""
        return f"{type(self).__name__}({f'{self.error.text()} [{self.code}]{cure}'!r})"

    def __str__(self) -> str:
        return diagnostics.render(
            self.error.code, self.error.text(), self.span, self.error.text("label"), self.error.text("hint")
        )


class FusecTypeError(FusecError, TypeError):
    """A FusecError that is also a TypeError.

    >>> try:
    ...     fusec.sum(np.array(["a"]))
    ... except fusec.FusecTypeError as error:
    ...     print(error.code)
    F206
    """


class FusecValueError(FusecError, ValueError):
    """A FusecError that is also a ValueError.

    >>> try:
    ...     fusec.ElementwiseKernel("T x", "T y", "y = x +")
    ... except fusec.FusecValueError as error:
    ...     print(error.code)
    F126
    """


class FusecOverflowError(FusecValueError, OverflowError):
    """A FusecValueError that is also an OverflowError.

    >>> try:
    ...     fusec.ElementwiseKernel("uint8 x, uint8 y", "uint8 z", "z = x + y")(np.ones(3, "uint8"), 300)
    ... except fusec.FusecOverflowError as error:
    ...     print(error.code)
    F219
    """


class FusecIndexError(FusecError, IndexError):
    """A FusecError that is also an IndexError.

    >>> try:
    ...     fusec.sum(np.ones(3), axis=1)
    ... except fusec.FusecIndexError as error:
    ...     print(error.code)
    F240
    """


class FusecAttributeError(FusecError, AttributeError):
    """A FusecError that is also an AttributeError.

    >>> try:
    ...     fusec.fuse(lambda x: x.form)(np.ones(3))
    ... except fusec.FusecAttributeError as error:
    ...     print(error.code)
    F283
    """


class FusecKeyError(FusecError, KeyError):
    """A FusecError that is also a KeyError.

    >>> try:
    ...     fusec.evaluate("2 * unknown")
    ... except fusec.FusecKeyError as error:
    ...     print(error.code)
    F503
    """


class FusecMemoryError(FusecError, MemoryError):
    """A FusecError that is also a MemoryError.

    >>> issubclass(fusec.FusecMemoryError, MemoryError)
    True
    """


class FusecRuntimeError(FusecError, RuntimeError):
    """A FusecError that is also a RuntimeError: the machine is at fault, not the program.

    >>> issubclass(fusec.FusecRuntimeError, RuntimeError)
    True
    """


class FusecSyntaxError(FusecError, SyntaxError, ValueError):
    """A FusecError that is also a SyntaxError and a ValueError; numexpr raises one for some texts, one for others.

    >>> try:
    ...     fusec.evaluate("2 * (3")
    ... except fusec.FusecSyntaxError as error:
    ...     print(error.code)
    F500
    """

    def __init__(self, error: UserError, span: Span | None = None) -> None:
        FusecError.__init__(self, error, span)
        self.msg = str(self)  # what the module traceback shows of a SyntaxError


class FusecWarning(UserWarning):
    """A warning: a fused function does what NumPy does and a kernel refuses, or a setting is misspelt.

    >>> import warnings
    >>> warnings.simplefilter("error", fusec.FusecWarning)
    """

    __module__ = PUBLIC


CATALOGUE: dict[str, type[UserError]] = {}


@dataclass_transform(frozen_default=True)
class UserError:
    """Base of the catalogue. A subclass gives its code and its exception in its head, and texts as format strings.

    Subclasses are frozen dataclasses in all but cost: their fields are their annotations, in order, those of a base
    first. Making a hundred real ones would take longer than a first call. A field `cure` is the hint of a class that
    has no other. `{count:element}` in a text is a number of elements.
    """

    code: ClassVar[str] = ""  # F and three digits, never reused
    message: ClassVar[str] = ""
    label: ClassVar[str] = ""  # under the caret
    hint: ClassVar[str] = ""  # the cure
    about: ClassVar[str] = ""  # a longer explanation, which ``fusec explain CODE`` prints
    exception: ClassVar[type[FusecError]] = FusecValueError

    def __init_subclass__(cls, code: str = "", exception: type[FusecError] | None = None) -> None:
        cls.exception = exception or cls.exception
        if "cure" in cls.__annotations__ and not cls.hint:
            cls.hint = "{cure}"
        if code:
            cls.code = code
            assert cls.code not in CATALOGUE or CATALOGUE[cls.code].__qualname__ == cls.__qualname__, (
                f"{cls.__name__} and {CATALOGUE[cls.code].__name__} share the code {cls.code}"
            )
            CATALOGUE[cls.code] = cls

    def __init__(self, *args: object, **kwargs: object) -> None:
        names = self.field_names()
        assert len(args) <= len(names), f"{type(self).__name__} takes {names}, not {args}"
        values = dict(zip(names, args, strict=False)) | kwargs
        values = {name: getattr(type(self), name) for name in names if hasattr(type(self), name)} | values
        assert values.keys() == set(names), f"{type(self).__name__} takes {names}, not {sorted(values)}"
        self.__dict__.update(values)

    @classmethod
    def field_names(cls) -> tuple[str, ...]:
        """The names of the fields in order."""
        bases = [base for base in reversed(cls.__mro__) if issubclass(base, UserError)]
        kinds = {name: kind for base in bases for name, kind in base.__annotations__.items()}
        return tuple(name for name, kind in kinds.items() if not kind.startswith("ClassVar"))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *map(repr, self.__dict__.items())))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({fields})"

    def text(self, part: str = "message") -> str:
        """One of the class's format strings, filled in with the fields."""
        template: str = getattr(type(self), part)
        shown = {name: diagnostics.MessageField(value) for name, value in self.__dict__.items()}
        return template.format(**shown)

    def at(self, span: Span | None = None) -> FusecError:
        """The exception to raise: ``raise UnknownName(...).at(span)``."""
        return type(self).exception(self, span)


class Described(UserError):
    """An error with one message for several mistakes, which says what is wrong and what to do."""

    message = "{what}"
    what: str
    cure: str


class Named(UserError):
    """An error of a kernel, a function or a variable that has a name."""

    name: str


class OfParameter(Named):
    """An error of an argument: the names of the kernel and of its parameter."""

    param: str

    def called(self, param: str) -> Self:
        """The same error of a parameter as the user calls it."""
        return type(self)(**vars(self) | {"param": param})
