"""Type hints for the results of the decorators: users' type checkers see these protocols, which keep signatures.

A function of scalars is called with arrays. So its own signature is the first choice of a call, and further ones let
arrays stand for the first parameter, or the first two, whatever dtype they are annotated with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, overload

from numpy.typing import NDArray

from fusec.arguments.annotations import Axes, Foreign, Given, Number, Output
from fusec.codegen import DEFAULT_TARGET

if TYPE_CHECKING:
    from fusec.base.kernel_abi import Fp
    from fusec.dispatch.explain import Explanation

P = ParamSpec("P")
Rest = ParamSpec("Rest")
Result = TypeVar("Result", covariant=True)


class Decorated(Protocol):
    """The members that decorated functions of every kind have."""

    __name__: str
    __qualname__: str
    __module__: str
    name: str
    fp: Fp
    params: tuple[str, ...]

    def explain(self, *args: Any, **named: Any) -> Explanation:
        """Report how a call with these arguments runs; nothing is run."""

    def compile(self, *args: Any, **named: Any) -> None:
        """Compile what a call with these arguments runs; nothing is run."""


class Elemental(Decorated, Protocol):
    """The members of functions of elements, and of kernels over a grid."""

    @property
    def cached_codes(self) -> dict[str, str]:
        """LLVM text by dtypes, for every combination called so far."""

    def source(
        self, target: str = DEFAULT_TARGET, types: Mapping[str, object] | None = None, *, scalars: Sequence[str] = ()
    ) -> str:
        """The text for a target: CUDA C by default; `fusec compile --help` lists the targets."""


class ElementwiseFunction(Elemental, Protocol[P, Result]):
    """The result of `fusec.elementwise` and `fusec.stencil`."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the results."""

    @overload
    def __call__(self, *args: Number, **named: Number) -> Result: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(
        self, *args: Any, out: Output, stream: object = None, block_size: int | None = None, **named: Any
    ) -> Output: ...
    @overload
    def __call__(
        self: ElementwiseFunction[Concatenate[Any, Rest], Any], a: NDArray[Any] | list[Any], /,
        *args: Rest.args, **kwargs: Rest.kwargs,
    ) -> NDArray[Any]: ...  # fmt: skip
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self: ElementwiseFunction[Concatenate[Any, Rest], Any], a: Foreign, /,
        *args: Rest.args, **kwargs: Rest.kwargs,
    ) -> Foreign: ...  # fmt: skip
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> NDArray[Any]: ...
    @overload
    def __call__(
        self: ElementwiseFunction[Concatenate[Any, Any, Rest], Any], a: Given, b: Given, /,
        *args: Rest.args, **kwargs: Rest.kwargs,
    ) -> NDArray[Any]: ...  # fmt: skip
    @overload
    def __call__(
        self: ElementwiseFunction[Concatenate[Any, Any, Any, Rest], Any], a: Given, b: Given, c: Given, /,
        *args: Rest.args, **kwargs: Rest.kwargs,
    ) -> NDArray[Any]: ...  # fmt: skip
    @overload
    def __call__(
        self: ElementwiseFunction[Concatenate[Any, Any, Any, Any, Rest], Any],
        a: Given, b: Given, c: Given, d: Given, /, *args: Any, **kwargs: Any,
    ) -> NDArray[Any]: ...  # fmt: skip
    @overload
    def __call__(
        self: ElementwiseFunction[Concatenate[Any, Any, Rest], Any], a: Foreign | Number, b: Foreign | Number, /,
        *args: Rest.args, **kwargs: Rest.kwargs,
    ) -> Foreign: ...  # fmt: skip
    @overload
    def __call__(self, *args: Any, stream: object, block_size: int | None = None, **named: Any) -> Any: ...
    @overload
    def __call__(self, *args: Any, block_size: int, **named: Any) -> Any: ...


class GridKernel(Elemental, Protocol[P]):
    """The result of `fusec.kernel`."""

    block: tuple[int, ...]

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> None: ...
    @overload
    def __call__(self, *args: Any, stream: object, block_size: int | None = None, **named: Any) -> None: ...
    @overload
    def __call__(self, *args: Any, block_size: int, **named: Any) -> None: ...


class CallsKernels(Protocol):
    """What functions have that call kernels."""

    __name__: str
    __qualname__: str
    __module__: str

    def source(
        self,
        target: str = DEFAULT_TARGET,
        *args: Any,
        types: Mapping[str, object] | None = None,
        shape: Any = None,
        scalars: Sequence[str] = (),
        **options: Any,
    ) -> str:
        """The text of all kernels of a call, with a comment that lists their launches; nothing is run."""


class FusedFunction(CallsKernels, Protocol[P, Result]):
    """The result of `fusec.fuse`, which is called like the function itself, also as a method."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Result:
        """Run the kernels."""

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Self: ...
    @overload
    def __get__(
        self: FusedFunction[Concatenate[Any, Rest], Result], instance: object, owner: type | None = None
    ) -> FusedFunction[Rest, Result]: ...

    def explain(self, *args: P.args, **kwargs: P.kwargs) -> Explanation:
        """Report the kernels of a call: their number, their work, and why they are separate; nothing is run."""

    def compile(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Trace and compile a call; nothing is run."""

    def graph(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """What a call does, as a fusec.graph.Graph; nothing is run."""

    def clear_cache(self) -> None:
        """Forget all plans; the next call traces the function again."""


class BuiltInFunction(CallsKernels, Protocol[P, Result]):
    """A built-in function, or `fusec.evaluate`: it is called as it is written, and has the verbs of kernels."""

    name: str

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Result:
        """Run the kernels of the call."""

    def explain(self, *args: P.args, **kwargs: P.kwargs) -> Explanation:
        """Report how a call with these arguments runs; nothing is run."""


class EvaluateFunction(BuiltInFunction[P, Result], Protocol[P, Result]):
    """`fusec.evaluate`."""

    def graph(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """A text of some names as a fusec.graph.Graph; nothing is run."""


class GraphFunction(Protocol):
    """The result of `fusec.graph.Graph.compile`: a function with an argument for each input."""

    def __call__(self, *args: Any, out: Any = None) -> Any:
        """The output, or a tuple of several. out: arrays for them."""

    def explain(self, *args: Any) -> Explanation:
        """Report the kernels of a call; nothing is run."""

    def source(self, target: str = DEFAULT_TARGET, *args: Any, **options: Any) -> str:
        """The text of all kernels of a call; nothing is run."""

    def clear_cache(self) -> None:
        """Forget all plans."""


class ReductionFunction(Decorated, Protocol):
    """The result of `fusec.reduction`; its arguments are those of the map, and so unknown."""

    def source(
        self,
        target: str = DEFAULT_TARGET,
        types: Mapping[str, object] | None = None,
        *,
        shape: tuple[int, ...] | None = None,
        axis: Axes = None,
        scalars: Sequence[str] = (),
    ) -> str:
        """The text of all kernels for a target: "cuda", "metal", "llvm", "asm" (of this machine) or "ir"."""

    @overload
    def __call__(
        self, *args: Any, out: Output, axis: Axes = None, keepdims: bool = False, where: Any = True,
        stream: object = None, **named: Any,
    ) -> Output: ...  # fmt: skip
    @overload
    def __call__(
        self, *args: Any, axis: Axes = None, keepdims: bool = False, where: Any = True, stream: object = None,
        **named: Any,
    ) -> Any: ...  # fmt: skip
