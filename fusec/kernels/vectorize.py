"""fusec.vectorize: numpy.vectorize's interface to compiled functions of scalars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from fusec.arguments.annotations import FunctionOptions
from fusec.arguments.operands import host_array, wrapper_of
from fusec.arguments.scalars import SCALAR_TYPES, as_array
from fusec.base.public import Public
from fusec.dispatch.interception import PlainCall
from fusec.dispatch.planned import hide_internal_frames
from fusec.errors.arguments import WrongNumberOfOutputs, unknown_keyword
from fusec.errors.python import NotInSubset
from fusec.kernels.decorators import elementwise
from fusec.kernels.elementwise_function import RESERVED, Elementwise
from fusec.kernels.simulate import simulate

if TYPE_CHECKING:
    from fusec.dispatch.explain import Explanation


class vectorize(Public):  # noqa: N801 - NumPy's name
    """A function of numbers, compiled to run for every element of its arguments.

    pyfunc: as for `fusec.elementwise`; it is written in the same subset of Python. name, fp, names, bounds, check: as
    for `fusec.elementwise`. otypes: dtypes of the results, as codes or a list; inferred if None. doc: the docstring.
    cache: without effect. Lists and numbers are arrays, as for numpy.vectorize. Calls also take out=, stream= and
    block_size=. It pickles by its source. Results have the shape to which the arguments broadcast.
    Raises FusecError for anything outside of the subset, and for `excluded` and `signature`.

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
        **options: Unpack[FunctionOptions],
    ) -> None:
        del cache
        for option in options.keys() - FunctionOptions.__annotations__.keys():
            known = ("otypes", "doc", "excluded", "cache", "signature", *FunctionOptions.__annotations__)
            raise unknown_keyword("vectorize", option, known).at()
        if excluded or signature is not None:
            what = "'excluded='" if excluded else "'signature='"
            raise NotInSubset(f"{what} of vectorize is", "write numbers into the function, or loop yourself").at()
        self.pyfunc = pyfunc
        self.otypes = None if otypes is None else [np.dtype(each) for each in otypes]  # type: ignore[call-overload]
        self._function: Elementwise = elementwise(pyfunc, **options)  # type: ignore[assignment]
        self.name, self.fp, self.checks = self._function.name, self._function.fp, self._function.checks
        self.__name__ = self._function.__name__
        self.shown, self.source = self._function.shown, self._function.source
        self.document(doc if doc is not None else pyfunc.__doc__)

    @hide_internal_frames
    def __call__(self, *args: Any, **named: Any) -> Any:
        """The results for all elements, broadcast; a number if no argument has axes.

        args, named: of the function. out: the array for the result, or a tuple of them. stream, block_size: for arrays
        on a GPU.
        """
        return self._called(self._function, args, named)

    def plain_call(self, args: tuple[Any, ...], options: dict[str, Any]) -> PlainCall:
        """A call without fast paths, for fused functions."""
        return vectorize._called, (self, self._function._from_python, args, options), {}

    def _called(self, function: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        found = function(*self._arrays(args), **self._options(named))
        if self.otypes is None:
            return found
        count = len(found) if isinstance(found, tuple) else 1
        if count != len(self.otypes):
            results = ", ".join(f"result {number}" for number in range(1, count + 1))
            raise WrongNumberOfOutputs(self.__name__, count, len(self.otypes), results, "otypes=", "dtype").at()
        if isinstance(found, tuple):
            return tuple(self._as(kind, each) for each, kind in zip(found, self.otypes, strict=True))
        return self._as(self.otypes[0], found)

    def _arrays(self, args: tuple[Any, ...]) -> list[object]:
        names = (*self._function.params, *self._function.outputs)
        return [self._array(name, each) for name, each in zip(chain(names, repeat("")), args, strict=False)]

    def _options(self, named: Mapping[str, Any]) -> dict[str, object]:
        return {name: each if name in RESERVED else self._array(name, each) for name, each in named.items()}

    @hide_internal_frames
    def explain(self, *args: Any, **named: Any) -> Explanation:
        """Report how a call with these arguments runs; nothing is run."""
        return self._function.explain(*self._arrays(args), **self._options(named))

    def simulated(self, *args: Any, **named: Any) -> Any:
        """A call in the interpreter; see `fusec.simulate`."""
        return self._called(simulate(self._function), args, named)

    @property
    def cached_codes(self) -> dict[str, str]:
        """LLVM text by dtypes, for every combination called so far."""
        return self._function.cached_codes

    def described(self) -> tuple[str, str]:
        """The signature of the function, and its source."""
        return self._function.described()

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
        made = partial(type(self), name=self.name, fp=self.fp, check=self.checks)
        return made, (self._function, self.otypes, self.__doc__)


__all__ = ["vectorize"]
