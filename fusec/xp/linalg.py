"""Linear algebra of matrices in the last two axes; the others are a batch. LAPACK computes it."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

import numpy as np

from fusec.xp.array import Array
from fusec.xp.calls import Axis, DType, Operand, array_of, call, given, joint, several
from fusec.xp.documentation import documented
from fusec.xp.numpy_names import fallback
from fusec.xp.products import matmul, matrix_transpose, tensordot, vecdot
from fusec.xp.recording import eager

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]
LinAlgError = np.linalg.LinAlgError

# --- decompositions ------------------------------------------------------------------------------------------------


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors in the columns of matrices."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """Matrices with orthonormal columns, and upper triangular ones."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """The sign of determinants, and the logarithm of their absolute value."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """Left singular vectors in columns, singular values, and right singular vectors in rows."""

    U: Array
    S: Array
    Vh: Array


@documented
def cholesky(x: Operand, /, *, upper: bool = False) -> Array:
    """The lower triangular L with L @ L.mT.conj() = x.

    x: positive definite matrices; only the lower triangle is read. upper: the conjugate transpose of L instead.
    Raises LinAlgError, when it is evaluated, for other matrices.

    >>> xp.linalg.cholesky(xp.asarray([[4.0, 2.0], [2.0, 2.0]]))
    Array([[2., 0.],
           [1., 1.]])
    """
    return call(np.linalg.cholesky, x, **given(upper=upper))


@documented
def eigh(x: Operand, /, **options: Any) -> EigResult:
    """The eigenvalues in ascending order and the eigenvectors of symmetric or Hermitian matrices.

    >>> xp.linalg.eigh(xp.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    Array([1., 2.])
    """
    return EigResult(*several(np.linalg.eigh, array_of(x), **options))


@documented
def eigvalsh(x: Operand, /, **options: Any) -> Array:
    """The eigenvalues of symmetric or Hermitian matrices in ascending order.

    >>> xp.linalg.eigvalsh(xp.asarray([[2.0, 0.0], [0.0, 1.0]]))
    Array([1., 2.])
    """
    return call(np.linalg.eigvalsh, x, **options)


@documented
def eig(x: Operand, /) -> EigResult:
    """The eigenvalues and eigenvectors of square matrices, complex ones even if no imaginary part is left.

    >>> xp.linalg.eig(xp.asarray([[0.0, -1.0], [1.0, 0.0]])).eigenvalues
    Array([0.+1.j, 0.-1.j])
    """
    return EigResult(*map(_as_complex, eager(np.linalg.eig, (array_of(x),), {})))


@documented
def eigvals(x: Operand, /) -> Array:
    """The eigenvalues of square matrices, complex ones even if no imaginary part is left.

    >>> xp.linalg.eigvals(xp.asarray([[2.0, 0.0], [0.0, 1.0]]))
    Array([2.+0.j, 1.+0.j])
    """
    return _as_complex(eager(np.linalg.eigvals, (array_of(x),), {}))


def _as_complex(x: Array) -> Array:
    return x.astype(np.result_type(x.dtype, np.complex64), copy=False)


@overload
def qr(x: Operand, /, mode: Literal["reduced", "complete"] = "reduced") -> QRResult: ...
@overload
def qr(x: Operand, /, mode: Literal["r"]) -> Array: ...
@documented
def qr(x: Operand, /, mode: str = "reduced") -> QRResult | Array:
    """Q with orthonormal columns and an upper triangular R with Q @ R = x.

    mode: 'reduced' for as many columns of Q as are needed, 'complete' for a square Q, 'r' for R alone.

    >>> xp.linalg.qr(xp.asarray([[3.0], [4.0]])).Q.shape
    (2, 1)
    """
    if mode == "r":
        return call(np.linalg.qr, array_of(x), mode=mode)
    return QRResult(*several(np.linalg.qr, array_of(x), mode=mode))


@overload
def svd(x: Operand, /, full_matrices: bool = True, compute_uv: Literal[True] = True) -> SVDResult: ...
@overload
def svd(x: Operand, /, full_matrices: bool = True, *, compute_uv: Literal[False]) -> Array: ...
@documented
def svd(x: Operand, /, full_matrices: bool = True, compute_uv: bool = True) -> SVDResult | Array:
    """U, S and Vh with U @ diag(S) @ Vh = x: singular values in descending order, and their vectors.

    full_matrices: square U and Vh; otherwise as many vectors as there are singular values.
    compute_uv: False for the singular values alone.

    >>> xp.linalg.svd(xp.asarray([[3.0, 0.0], [0.0, 4.0]])).S
    Array([4., 3.])
    """
    if not compute_uv:
        return svdvals(x)
    return SVDResult(*several(np.linalg.svd, array_of(x), full_matrices=full_matrices))


@documented
def svdvals(x: Operand, /) -> Array:
    """The singular values in descending order.

    >>> xp.linalg.svdvals(xp.asarray([[3.0, 0.0], [0.0, 4.0]]))
    Array([4., 3.])
    """
    return call(np.linalg.svdvals, x)


# --- solutions -----------------------------------------------------------------------------------------------------


@documented
def det(x: Operand, /) -> Array:
    """The determinants of square matrices.

    >>> round(float(xp.linalg.det(xp.asarray([[1.0, 2.0], [3.0, 4.0]]))), 6)
    -2.0
    """
    return call(np.linalg.det, x)


@documented
def slogdet(x: Operand, /) -> SlogdetResult:
    """The sign of determinants and the logarithm of their absolute value, where these would overflow.

    >>> float(xp.linalg.slogdet(xp.asarray([[1.0, 0.0], [0.0, -1.0]])).sign)
    -1.0
    """
    return SlogdetResult(*several(np.linalg.slogdet, array_of(x)))


@documented
def inv(x: Operand, /) -> Array:
    """The inverses of square matrices.

    Raises LinAlgError, when it is evaluated, for singular ones.

    >>> xp.linalg.inv(xp.asarray([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    return call(np.linalg.inv, x)


@documented
def pinv(x: Operand, /, *, rtol: Any = None) -> Array:
    """The pseudo-inverses, by singular values.

    >>> xp.linalg.pinv(xp.asarray([[2.0], [0.0]]))
    Array([[0.5, 0. ]])
    """
    return call(np.linalg.pinv, x, **given(rtol=rtol))


@documented
def solve(x1: Operand, x2: Operand, /) -> Array:
    """The x with x1 @ x = x2.

    x1: square matrices. x2: matrices, or one vector.
    Raises LinAlgError, when it is evaluated, for singular matrices.

    >>> xp.linalg.solve(xp.asarray([[2.0, 0.0], [0.0, 4.0]]), xp.asarray([2.0, 2.0]))
    Array([1. , 0.5])
    """
    return joint(np.linalg.solve, x1, array_of(x2))


@documented
def matrix_power(x: Operand, n: int, /) -> Array:
    """Square matrices to an integer power.

    n: negative for powers of the inverse.

    >>> xp.linalg.matrix_power(xp.asarray([[1, 1], [0, 1]]), 3)
    Array([[1, 3],
           [0, 1]])
    """
    return call(np.linalg.matrix_power, x, n)


@documented
def matrix_rank(x: Operand, /, *, rtol: Any = None, **options: Any) -> Array:
    """How many singular values are not zero.

    >>> int(xp.linalg.matrix_rank(xp.asarray([[1.0, 2.0], [2.0, 4.0]])))
    1
    """
    return call(np.linalg.matrix_rank, x, **given(rtol=rtol), **options)


# --- norms, products and parts -------------------------------------------------------------------------------------


@documented
def matrix_norm(x: Operand, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:  # noqa: A002
    """The norms of matrices.

    ord: 'fro', 'nuc', 1, -1, 2, -2, inf or -inf. The shape of the result is that of x without the last two axes.

    >>> float(xp.linalg.matrix_norm(xp.asarray([[3.0, 0.0], [0.0, 4.0]])))
    5.0
    """
    return call(np.linalg.matrix_norm, x, keepdims=keepdims, ord=ord)


@documented
def vector_norm(x: Operand, /, *, axis: Axis = None, keepdims: bool = False, ord: Any = 2) -> Array:  # noqa: A002
    """The norms of vectors.

    ord: a number, 2 for the length, 1 for the sum of absolute values, inf and -inf for the greatest and the least.

    >>> float(xp.linalg.vector_norm(xp.asarray([3.0, 4.0])))
    5.0
    """
    return call(np.linalg.vector_norm, x, axis=axis, keepdims=keepdims, ord=ord)


@documented
def cross(x1: Operand, x2: Operand, /, *, axis: int = -1) -> Array:
    """The cross product of vectors of three elements along an axis.

    >>> xp.linalg.cross(xp.asarray([1, 0, 0]), xp.asarray([0, 1, 0]))
    Array([0, 0, 1])
    """
    return joint(np.linalg.cross, x1, array_of(x2), axis=axis)


@documented
def outer(x1: Operand, x2: Operand, /) -> Array:
    """The products of all elements of one vector with all of another one.

    x2: any length; the shape of the result is the two lengths.

    >>> xp.linalg.outer(xp.asarray([1, 2]), xp.asarray([10, 20]))
    Array([[10, 20],
           [20, 40]])
    """
    return joint(np.linalg.outer, x1, array_of(x2))


@documented
def diagonal(x: Operand, /, *, offset: int = 0) -> Array:
    """A diagonal of matrices, as the last axis of a view.

    >>> xp.linalg.diagonal(xp.asarray([[1, 2], [3, 4]]))
    Array([1, 4])
    """
    return array_of(x)._viewed(np.linalg.diagonal, offset=offset)


@documented
def trace(x: Operand, /, *, offset: int = 0, dtype: DType = None) -> Array:
    """The sums of a diagonal of matrices.

    >>> int(xp.linalg.trace(xp.asarray([[1, 2], [3, 4]])))
    5
    """
    return call(np.linalg.trace, x, offset=offset, **given(dtype=dtype))


def __getattr__(name: str) -> Any:
    return fallback(name, __name__, np.linalg, "linalg.", __all__)
