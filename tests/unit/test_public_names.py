"""What users see of the package and of kernels: names, and nothing that fusec keeps for itself."""

import numpy as np
import pytest

import fusec
from fusec.base.public import VERBS


@fusec.elementwise
def twice(x):
    return 2 * x


@fusec.stencil
def beside(x):
    return x[-1] + x[1]


@fusec.kernel
def clear(x):
    for i in fusec.grid(x.shape[0]):
        x[i] = 0


@fusec.reduction
def together(a, b):
    return a + b


@fusec.fuse
def spread(x):
    return x - x.mean()


KINDS = {
    "ElementwiseKernel": fusec.ElementwiseKernel("T x", "T y", "y = 2 * x", "twice"),
    "ReductionKernel": fusec.ReductionKernel("T x", "T y", "x", "a + b", "y = a", 0, "together"),
    "ScanKernel": fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0, "together"),
    "elementwise": twice,
    "stencil": beside,
    "kernel": clear,
    "reduction": together,
    "fuse": spread,
    "NumExpr": fusec.NumExpr("2*x"),
    "vectorize": fusec.vectorize(lambda x: 2 * x),
}


def shown(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("__")}


@pytest.mark.parametrize("kind", KINDS)
def test_dir_of_a_kernel_shows_what_users_do_with_it(kind: str) -> None:
    kernel = KINDS[kind]
    kernel(np.ones(3))
    assert shown(kernel) <= VERBS
    assert all(hasattr(kernel, name) for name in dir(kernel))
    assert kind == "vectorize" or {"explain", "source", "run"} & shown(kernel)


def test_every_verb_is_one_of_some_kind() -> None:
    assert set().union(*map(shown, KINDS.values())) == VERBS


@pytest.mark.parametrize("module", [fusec, fusec.random])
def test_dir_of_a_module_shows_public_names(module: object) -> None:
    assert set(module.__all__) <= shown(module)
    for name in shown(module):
        of = getattr(getattr(module, name), "__module__", None)
        assert name == "random" or of.startswith("fusec"), name
    assert not shown(module) & {"HOMES", "TYPE_CHECKING", "locks", "usual", "np", "log", "base", "errors"}
