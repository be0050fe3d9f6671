"""Annotations to dtypes: of parameters, results and variables."""

from __future__ import annotations

from fusec.base.diagnostics import did_you_mean
from fusec.base.dtypes import BY_NAME, DType
from fusec.errors.python import BadAnnotation
from fusec.frontends.python import syntax as s
from fusec.frontends.python.build import unquoted
from fusec.frontends.python.kernel_context import KernelContext, Other
from fusec.frontends.python.name_usage import dotted_name, last_name
from fusec.frontends.python.types import PythonType, storage
from fusec.frontends.python.values import Absent, Type

PYTHON = {"float": "float64", "int": "int64", "bool": "bool", "complex": "complex128", "bool_": "bool"}
ANY = frozenset("ndarray Array ArrayLike NDArray object Any array tuple Number".split())


def dtype_of(node: s.Expression | None, kernel: KernelContext, key: str) -> DType | None:
    """The dtype that an annotation fixes, None if it leaves it open. Raises BadAnnotation.

    float, int, bool and complex are NumPy's dtypes of those names; names of array classes say nothing about a dtype.
    """
    if node is None:
        return None
    text = unquoted(node.text).strip() if isinstance(node, s.String) else dotted_name(node)
    if text is None:
        if isinstance(node, s.Index) and last_name(node.value) in ANY:
            return None
        if isinstance(node, s.Constant) and node.value is None:
            return None
        raise BadAnnotation(node.span.text, "write a dtype, e.g. float32, np.float32 or 'float32'").at(node.span)
    name = text.rpartition(".")[2]
    captured = None if name in PYTHON and "." not in text else kernel.captured(key, text)
    match captured:
        case Type(kind=kind):
            return storage(kind) if isinstance(kind, PythonType) else kind
        case Absent() | Other(is_array_class=True):
            return None
    found = BY_NAME.get(PYTHON.get(name, name))
    if found is not None:
        return found
    if name in ANY:
        return None
    cure = did_you_mean(name, BY_NAME) or "write a dtype, e.g. float32, np.float32 or 'float32'"
    raise BadAnnotation(text, cure).at(node.span)
