"""fusec.vectorize: numpy.vectorize's interface to compiled functions of scalars."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from fusec.arguments.operands import host_array, wrapper_of
from fusec.arguments.scalars import SCALAR_TYPES, as_array
from fusec.base.public import Public
from fusec.dispatch.planned import hide_internal_frames
from fusec.errors.arguments import WrongNumberOfOutputs
from fusec.errors.python import NotInSubset
from fusec.kernels.decorators import elementwise

if TYPE_CHECKING:
    from fusec.dispatch.explain import Explanation


class vectorize(Public):  # noqa: N801 - NumPy's name
    """A function of numbers, compiled to run for every element of its arguments.

    pyfunc: as for `fusec.elementwise`, whose subset of Python it is written in.
    otypes: dtypes of the results, as codes or a list; inferred if None. doc: the docstring. cache: makes no
    difference. Lists and numbers are arrays, as they are to NumPy's. Pickles by its source. Results have the shape of
    all arguments together. Raises FusecError for what the subset has not, and for `excluded` and `signature`.

    >>> twice = fusec.vectorize(lambda x: 2 * x)
    >>> twice([1, 2, 3])
    array([2, 4, 6])
    """

    @hide_internal_frames
    def __init__(
        self,
        pyfunc: Callable[..., Any],
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
        self._function = elementwise(pyfunc)
        self.__doc__ = doc if doc is not None else pyfunc.__doc__
        self.__name__ = self._function.__name__

    @hide_internal_frames
    def __call__(self, *args: Any, **named: Any) -> Any:
        """The results for all elements, broadcast; a number if no argument has axes."""
        names = (*self._function.params, *self._function.outputs)
        given = [self._array(name, each) for name, each in zip(chain(names, repeat("")), args, strict=False)]
        found = self._function(*given, **{name: self._array(name, each) for name, each in named.items()})
        if self.otypes is None:
            return found
        count = len(found) if isinstance(found, tuple) else 1
        if count != len(self.otypes):
            results = ", ".join(f"result {number}" for number in range(1, count + 1))
            raise WrongNumberOfOutputs(self.__name__, count, len(self.otypes), results, "otypes=", "dtype").at()
        if isinstance(found, tuple):
            return tuple(self._as(kind, each) for each, kind in zip(found, self.otypes, strict=True))
        return self._as(self.otypes[0], found)

    @hide_internal_frames
    def explain(self, *args: Any, **named: Any) -> Explanation:
        """Report how a call with these arguments runs; nothing is run."""
        return self._function.explain(*args, **named)

    def _as(self, kind: np.dtype[Any], found: Any) -> object:
        """A result as another dtype, in its container."""
        if hasattr(found, "astype"):
            return found.astype(kind)
        array, wrap = host_array(found, "otypes", self.__name__).astype(kind), wrapper_of((found,))
        return array if wrap is None else wrap(array)

    def _array(self, name: str, given: object) -> object:
        if isinstance(given, SCALAR_TYPES):
            return as_array(given, name, self.__name__)
        return given

    def __repr__(self) -> str:
        return f"<fusec.vectorize {self.__name__}>"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._function, self.otypes, self.__doc__)


__all__ = ["vectorize"]
