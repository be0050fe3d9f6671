"""Methods of objects whose class has a fused function."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fusec.base.public import VERBS
from fusec.codegen import DEFAULT_TARGET
from fusec.dispatch.planned import hide_internal_frames

if TYPE_CHECKING:
    from fusec.dispatch.explain import Explanation
    from fusec.dispatch.shown import Showing, ShownKernels


class BoundFused(functools.partial[Any]):
    """A fused function with the object as its first argument, which has the function's verbs."""

    func: Any  # a KernelCaller

    @property
    def __self__(self) -> Any:
        """The object."""
        return self.args[0]

    @property
    def __func__(self) -> Any:
        """The function that all objects of the class share."""
        return self.func

    @property
    def name(self) -> str:
        """That of the kernels."""
        return str(self.func.name)

    @property
    def params(self) -> tuple[str, ...]:
        """The parameters behind the object."""
        return tuple(self.func.params[1:])

    @property
    def cached_codes(self) -> Any:
        """LLVM text by number of the kernel and dtypes, for every kind of call so far, of any object."""
        return self.func.cached_codes

    @hide_internal_frames
    def explain(self, *args: Any, **options: Any) -> Explanation:
        """The kernels of a call: their number, their work, and why they are separate. Nothing is run."""
        return self.func.explain(*self.args, *args, **options)  # type: ignore[no-any-return]

    @hide_internal_frames
    def source(
        self, target: str = DEFAULT_TARGET, *args: Any, types: Any = None, shape: Any = None,
        scalars: Sequence[str] = (), **options: Any,
    ) -> str:  # fmt: skip
        """The text of all kernels of a call for a target; see `source` of functions."""
        asked = {"types": types, "shape": shape, "scalars": scalars}
        first = {self.func.params[0]: self.args[0]}
        return str(self.func.sourced(target, args, asked, options, first))

    def shown(self, asked: Showing) -> ShownKernels:
        """What source() shows: the kernels of a call with arguments of certain types."""
        found: ShownKernels = self.func.shown(asked, {self.func.params[0]: self.args[0]})
        return found

    @hide_internal_frames
    def simulated(self, *args: Any, **options: Any) -> Any:
        """A call in the interpreter; see `fusec.simulate`."""
        return self.func.simulated(*self.args, *args, **options)

    def listed(self, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """The kernels of a call, with all that lies between them."""
        return self.func.listed((*self.args, *args), options)

    def clear_cache(self) -> None:
        """Forget all plans, those of other objects too."""
        self.func.clear_cache()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__name__", "__qualname__", "__wrapped__"):
            raise AttributeError(name)
        found = getattr(self.func, name)
        return functools.partial(found, *self.args) if name == "compile" else found

    def __dir__(self) -> list[str]:
        return sorted(name for name in object.__dir__(self) if name in VERBS or name.startswith("__"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BoundFused) and self.func is other.func and self.args[0] is other.args[0]

    def __hash__(self) -> int:
        return hash((id(self.func), id(self.args[0])))

    def __repr__(self) -> str:
        return f"<bound {self.func!r} of {self.args[0]!r}>"


setattr(BoundFused, "__doc__", property(lambda method: method.func.__doc__))  # noqa: B010 - objects have the function's
