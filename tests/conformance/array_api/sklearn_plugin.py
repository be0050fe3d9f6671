"""A plugin of pytest that runs scikit-learn's tests of array libraries on fusec.xp, and on nothing else."""

from collections.abc import Iterator

import sklearn.utils._array_api as array_api


def _namespaces(include_numpy_namespaces: bool = True) -> Iterator[str]:
    yield "fusec.xp"


def _combinations(include_numpy_namespaces: bool = True) -> Iterator[tuple[str, None, None]]:
    yield "fusec.xp", None, None


array_api.yield_namespaces = _namespaces
array_api.yield_namespace_device_dtype_combinations = _combinations
