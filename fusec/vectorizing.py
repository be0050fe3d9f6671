"""fusec.vectorize: numpy.vectorize's calls over compiled functions of scalars."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable

import numpy as np

from fusec.array_functions import Elementwise
from fusec.decorators import elementwise
from fusec.errors.python import NoSource, NotAFunction, NotInSubset
from fusec.planned import briefly
from fusec.scalars import SCALAR_TYPES


class vectorize:  # noqa: N801 - NumPy's name
    """A function of numbers, compiled to run for every element of its arguments.

    pyfunc: as for `fusec.elementwise`, whose subset of Python it is written in. A lambda stands alone in its statement.
    otypes: dtypes of the results, as codes or a list; inferred if None. doc: the docstring. cache: makes no
    difference. Lists and numbers are arrays, as they are to NumPy's.
    Raises FusecError for what the subset has not, and for `excluded` and `signature`.
    """

    @briefly
    def __init__(
        self,
        pyfunc: Callable[..., object],
        otypes: str | Iterable[object] | None = None,
        doc: str | None = None,
        excluded: object = None,
        cache: bool = False,
        signature: str | None = None,
    ) -> None:
        del cache
        if excluded or signature is not None:
            what = "'excluded='" if excluded else "'signature='"
            raise NotInSubset(f"{what} of vectorize is", "write numbers into the function, or loop yourself").at()
        self.pyfunc = pyfunc
        self.otypes = None if otypes is None else [np.dtype(each) for each in otypes]  # type: ignore[call-overload]
        self._function: Elementwise = _of_lambda(pyfunc) if _is_lambda(pyfunc) else elementwise(pyfunc)
        self.__doc__ = doc if doc is not None else pyfunc.__doc__
        self.__name__ = self._function.__name__

    @briefly
    def __call__(self, *args: object, **named: object) -> object:
        """The results for all elements, broadcast; a number of arguments without axes."""
        found = self._function(*map(_array, args), **{name: _array(each) for name, each in named.items()})
        if self.otypes is None:
            return found
        if isinstance(found, tuple):
            return tuple(each.astype(kind) for each, kind in zip(found, self.otypes, strict=True))
        return found.astype(self.otypes[0])  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"<fusec.vectorize {self.__name__}>"


def _array(given: object) -> object:
    return np.asarray(given) if isinstance(given, (list, tuple, *SCALAR_TYPES)) else given


def _is_lambda(function: object) -> bool:
    return getattr(function, "__name__", "") == "<lambda>"


def _of_lambda(function: Callable[..., object]) -> Elementwise:
    """A lambda as the function that it stands for. Raises NoSource, and NotAFunction if its line has several."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except OSError:
        raise NoSource("lambda", "it was typed at a prompt, or its file is gone").at() from None
    found = [node for node in ast.walk(_parsed(text)) if isinstance(node, ast.Lambda)]
    if len(found) != 1:
        raise NotAFunction(f"{len(found)} lambdas stand in one statement", "define the function with def").at()
    (node,) = found
    code = function.__code__
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    names = {**function.__globals__, **{name: cell.cell_contents for name, cell in cells}}
    return elementwise(f"def function({ast.unparse(node.args)}):\n    return {ast.unparse(node.body)}\n", names=names)


def _parsed(text: str) -> ast.AST:
    """The statement that a lambda stands in, or as much of it as makes sense by itself."""
    for cut in (text, f"({text.strip().rstrip(',')})", text[text.find("lambda") :].strip()):
        for end in range(len(cut), 0, -1) if cut is not text else (len(cut),):
            try:
                return ast.parse(cut[:end])
            except SyntaxError:
                continue
    return ast.Module([], [])


__all__ = ["vectorize"]
