"""A plugin of pytest that runs SciPy's tests of array libraries on fusec.xp, and on nothing else."""

from collections.abc import Iterator
from typing import Any

import pytest
import scipy.conftest as conftest
from scipy._lib._array_api import array_namespace, default_xp

import fusec.xp

conftest.xp_known_backends.add("fusec.xp")


@pytest.fixture(params=[pytest.param(fusec.xp, id="fusec", marks=pytest.mark.array_api_backends)])
def xp(request: Any) -> Iterator[Any]:
    """The namespace, as SciPy's own fixture gives it."""
    conftest.skip_or_xfail_xp_backends(request, "skip")
    conftest.skip_or_xfail_xp_backends(request, "xfail")
    found = array_namespace(request.param.empty(0))
    with conftest.patch_lazy_xp_functions(request=request, xp=request.param), default_xp(found):
        yield found
