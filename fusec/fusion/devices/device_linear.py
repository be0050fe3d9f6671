"""Linear algebra on devices by cuSOLVER: which calls it computes, and how its matrices lie.

cuSOLVER's matrices are dense and lie column by column. What it works on is a copy of the operand. Where a transposed
matrix serves as well, and results of NumPy's are such seen by columns, it works in the memory of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from math import prod
from typing import Any, NamedTuple

from fusec.base import dtypes, locks
from fusec.base.dtypes import DType
from fusec.base.kernel_abi import strides_in_order
from fusec.dispatch.spec import CallOptions
from fusec.fusion.devices.recipes import KernelStage, Part, Recipe, RecipeBuilder, named
from fusec.fusion.functions.matrix_products import MAX_KNOWN
from fusec.fusion.trace.trace_values import LibraryCall
from fusec.runtime import cuda
from fusec.runtime.cuda import solvers

LIBRARY = solvers.library

_QR_MODES = ("reduced", "complete", "r", "raw")
_MOST_ELEMENTS = 1 << 31  # of all matrices, whose eigenvalues one call finds

Order = tuple[int, ...]


@lru_cache(MAX_KNOWN)
def computes(call: LibraryCall) -> bool:
    """Whether cuSOLVER computes a call."""
    if call.name not in _RECIPES or any(each.dtype not in solvers.ROWS for each in call.buffers):
        return False
    return bool(named(call, call.operands).get("mode", "reduced") in _QR_MODES)


def recipe(call: LibraryCall, forms: Sequence[Any], device: int) -> Recipe:
    """How a call is computed. forms: of the operands and the results. Raises CudaMathMissing, CudaMathRefused."""
    builder = _LinearBuilder(forms, device)
    parts = [builder.whole(at) for at in range(len(forms))]
    count = len(call.operands)
    _RECIPES[call.name](builder, named(call, parts[:count]), parts[count:])
    return builder.made()


# --- kernels ---------------------------------------------------------------------------------------------------------


@cache
def kernel(name: str) -> Any:
    """One of the kernels beside cuSOLVER."""
    with locks.lock:
        from fusec.kernels.elementwise_kernel import ElementwiseKernel

    inputs, outputs, body = _KERNELS[name]
    return ElementwiseKernel(inputs, outputs, body, f"linear_{name}", reduce_dims=False)


_ROW, _COLUMN = "_ind.get()[_ind.ndim - 2]", "_ind.get()[_ind.ndim - 1]"
_KERNELS = {
    "lower": ("T x", "U y", f"y = {_COLUMN} > {_ROW} ? U(0) : U(x)"),
    "upper": ("T x", "U y", f"y = {_COLUMN} < {_ROW} ? U(0) : U(x)"),
    "identity": ("", "T y", f"y = {_COLUMN} == {_ROW} ? T(1) : T(0)"),
    "filled": ("float64 value", "T y", "y = value"),
    "addresses": ("uint64 start, uint64 step", "uint64 y", "y = start + step * i"),
    "determinant": (
        "raw T lu, raw I pivots, raw int32 info", "T sign, S size",
        """
        long long n = lu.shape()[1];
        T turned = 1;
        double total = 0;
        for (long long j = 0; j < n; j++) {
            T d = lu[(i * n + j) * n + j];
            S length = abs(d);
            if (pivots[i * n + j] != j + 1) turned = -turned;
            turned *= length == S(0) ? T(0) : d / length;
            total += log((double)length);
        }
        sign = info[i] ? T(0) : turned;
        size = info[i] ? -(S)INFINITY : (S)total;
        """,
    ),
    "cleared": ("T x, int32 info", "T y", "y = info ? T(NAN) : x"),
    "product": ("T sign, float64 size", "T y", "y = sign * (T)exp(size)"),
    "pairs": (
        "T value, raw S packed", "T y",
        """
        if (imag(value) == 0) y = T(packed[i]);
        else if (imag(value) > 0) y = T(packed[i], packed[i + 1]);
        else y = T(packed[i - 1], -packed[i]);
        """,
    ),
}  # fmt: skip


class _Addresses(NamedTuple):
    """The addresses of matrices that follow each other, so many bytes apart."""

    several: int
    step: int

    def run(self, addresses: Sequence[int], device: int, stream: int) -> None:
        """Enqueue what writes them. addresses: of the first matrix, and of what is written."""
        start, place = addresses
        target = cuda.DeviceArray(place, (self.several,), (8,), dtypes.UINT64, device, False, None, None, None)
        kernel("addresses").run((start, self.step, target), None, CallOptions(stream=stream))


# --- matrices --------------------------------------------------------------------------------------------------------


def _turned(part: Part) -> Part:
    """Matrices with rows and columns exchanged."""
    form = part.form
    shape, steps = ((*each[:-2], each[-1], each[-2]) for each in (form.shape, form.strides))
    return part._replace(form=form._replace(shape=shape, strides=steps))


def _spread(part: Part, shape: Sequence[int]) -> Part:
    """An array broadcast to a shape."""
    form, lead = part.form, len(shape) - len(part.form.shape)
    steps = [step if extent > 1 else 0 for extent, step in zip(form.shape, form.strides, strict=True)]
    return part._replace(form=form._replace(shape=tuple(shape), strides=(*(0,) * lead, *steps)))


class _Factors(NamedTuple):
    """Triangular factors of matrices. lists: their addresses, where all are factored at once."""

    lu: Part
    pivots: Part
    info: Part
    size: int
    several: int
    lists: Part | None


class _LinearBuilder(RecipeBuilder):
    """Adds the stages of linear algebra to a recipe. Orders of matrices are "C", row by row, and "F"."""

    def __init__(self, forms: Sequence[Any], device: int) -> None:
        super().__init__(forms)
        self.device = device

    def stack(self, row: DType, rows: int, columns: int, several: int) -> solvers.MatrixStack:
        """Matrices as cuSOLVER is told of them."""
        return solvers.MatrixStack(row, rows, columns, several, self.device)

    def launch(self, name: str, *operands: Part | float) -> None:
        """Run one of the kernels."""
        last = operands[-1]
        if isinstance(last, Part) and 0 not in last.form.shape:
            self.stages.append(KernelStage(kernel(name), operands))

    def matrices(self, shape: Sequence[int], row: DType, order: str) -> Part:
        """Memory for dense matrices."""
        axes = [*range(len(shape))]
        return self.room(shape, row, axes if order == "C" else [*axes[:-2], axes[-1], axes[-2]])

    def loaded(self, source: Part, row: DType, order: str) -> Part:
        """A copy of matrices."""
        room = self.matrices(source.form.shape, row, order)
        self.copy(source, room)
        return room

    def target(self, result: Part, orders: str) -> tuple[Part, str]:
        """Where to make a result: in its own memory if that has one of these orders, else elsewhere in the first."""
        shape, strides, row = result.form.shape, result.form.strides, result.form.row
        axes = [*range(len(shape))]
        for order in orders:
            dense = strides_in_order(shape, axes if order == "C" else [*axes[:-2], axes[-1], axes[-2]], row.nbytes)
            if all(one == other or extent < 2 for one, other, extent in zip(strides, dense, shape, strict=True)):
                return result, order
        return self.matrices(shape, row, orders[0]), orders[0]

    def settle(self, made: Part, result: Part) -> None:
        """Have a result that may be elsewhere in its own memory."""
        if made != result:
            self.copy(made, result)

    def solve(self, routine: solvers.SolverCall, *arrays: Part, info: Part | None = None, text: str = "") -> None:
        """Call cuSOLVER. text: of the error where it cannot do its work; "": it always can."""
        info = info or self.info(routine.several)
        space = self.room((max(1, routine.nbytes),), dtypes.UINT8)
        self.call(routine.run, (space, info, *arrays))
        if text:
            self.call(solvers.Outcome(routine.several, text).run, [info])

    def info(self, count: int) -> Part:
        """Memory for a number for each matrix."""
        return self.room((count,), dtypes.INT32)

    def addresses(self, first: Part, count: int, step: int) -> Part:
        """The addresses of matrices."""
        room = self.room((count,), dtypes.UINT64)
        self.call(_Addresses(count, step).run, [first, room])
        return room

    def factored(self, matrices: Part) -> _Factors:
        """Factors of dense square matrices, in place."""
        row, size, count = matrices.form.row, matrices.form.shape[-1], prod(matrices.form.shape[:-2])
        info = self.info(count)
        if solvers.is_many(size, count):
            lists = self.addresses(matrices, count, size * size * row.nbytes)
            pivots = self.room((count, size), dtypes.INT32)
            self.call(solvers.ManyFactored(row, size, count).run, [info, lists, pivots])
            return _Factors(matrices, pivots, info, size, count, lists)
        pivots = self.room((count, size), dtypes.INT64)
        self.solve(solvers.lu(self.stack(row, size, size, count)), matrices, pivots, info=info)
        return _Factors(matrices, pivots, info, size, count, None)

    def solved(self, factors: _Factors, sides: Part, columns: int, is_sure: bool = False) -> None:
        """Solutions of systems with so many right-hand sides, in their place. is_sure: singular ones are no error."""
        lu, size, count = factors.lu, factors.size, factors.several
        row = lu.form.row
        if factors.lists is None:
            self.solve(solvers.solution(self.stack(row, size, size, count), columns), lu, factors.pivots, sides)
        else:
            lists = self.addresses(sides, count, size * columns * row.nbytes)
            call = solvers.ManySolved(row, size, columns, count)
            self.call(call.run, [factors.lists, factors.pivots, lists])
        if not is_sure:
            self.call(solvers.Outcome(count, "Singular matrix").run, [factors.info])


Given = Mapping[str, Any]
Results = Sequence[Part]


def _is_empty(*parts: Part) -> bool:
    return any(0 in each.form.shape for each in parts)


# --- systems ---------------------------------------------------------------------------------------------------------


def _cholesky(builder: _LinearBuilder, given: Given, results: Results) -> None:
    (result,), is_upper = results, bool(given.get("upper", False))
    if _is_empty(result):
        return
    row, size, count = result.form.row, result.form.shape[-1], prod(result.form.shape[:-2])
    made, order = builder.target(result, "CF")
    builder.copy(given["a"], made)
    routine = solvers.cholesky(builder.stack(row, size, size, count), is_upper == (order == "F"))
    info, text = builder.info(count), "Matrix is not positive definite"
    given_as = made
    if solvers.is_many(size, count):
        given_as = builder.addresses(made, count, size * size * row.nbytes)
    builder.solve(routine, given_as, info=info, text=text)
    builder.launch("upper" if is_upper else "lower", made, result)  # cuSOLVER works in the other triangle


def _inverse(builder: _LinearBuilder, given: Given, results: Results) -> None:
    (result,) = results
    if _is_empty(result):
        return
    made, order = builder.target(result, "CF")
    factors = builder.factored(builder.loaded(given["a"], result.form.row, order))
    builder.launch("identity", made)
    builder.solved(factors, made, factors.size)
    builder.settle(made, result)


def _inverse_or_nan(builder: _LinearBuilder, given: Given, results: Results) -> None:
    """What np.linalg.cond takes for inverses: those of singular matrices are nan."""
    (result,) = results
    if _is_empty(result):
        return
    row = result.form.row
    made, order = builder.target(result, "CF")
    factors = builder.factored(builder.loaded(given["x"], row, order))
    builder.launch("identity", made)
    builder.solved(factors, made, factors.size, is_sure=True)
    stack = result.form.shape[:-2]
    steps = (*strides_in_order(stack, range(len(stack)), 4), 0, 0)
    info = factors.info.form._replace(shape=result.form.shape, strides=steps)
    builder.launch("cleared", made, factors.info._replace(form=info), result)


def _solution(builder: _LinearBuilder, given: Given, results: Results) -> None:
    a, b, (result,) = given["a"], given["b"], results
    if _is_empty(result):
        return
    row = result.form.row
    whole = result
    if len(b.form.shape) == 1:
        whole, b = (_columns(each) for each in (result, b))
    made, _ = builder.target(whole, "F")
    builder.copy(_spread(b, whole.form.shape), made)
    size, columns = whole.form.shape[-2:]
    stack, own = whole.form.shape[:-2], a.form.shape[:-2]
    if prod(own) == 1:
        columns *= prod(stack)
        a = a._replace(form=a.form._replace(shape=(size, size), strides=a.form.strides[-2:]))
    elif own != stack:
        a = _spread(a, (*stack, size, size))
    factors = builder.factored(builder.loaded(a, row, "F"))
    builder.solved(factors, made, columns)
    builder.settle(made, whole)


def _columns(part: Part) -> Part:
    """Vectors as matrices of one column."""
    form = part.form
    return part._replace(form=form._replace(shape=(*form.shape, 1), strides=(*form.strides, form.row.nbytes)))


def _determinant(builder: _LinearBuilder, given: Given, results: Results) -> None:
    sign, *_ = results
    a, row = given["a"], sign.form.row
    if _is_empty(sign):
        return
    is_plain = len(results) == 1
    size = builder.room(sign.form.shape, dtypes.FLOAT64) if is_plain else results[1]
    turned = builder.room(sign.form.shape, row) if is_plain else sign
    if _is_empty(a):
        builder.launch("filled", 1.0, turned)
        builder.launch("filled", 0.0, size)
    else:
        factors = builder.factored(builder.loaded(a, row, "C"))
        shape = (factors.several, factors.size, factors.size)
        strides = strides_in_order(shape, range(3), row.nbytes)
        lu = factors.lu._replace(form=factors.lu.form._replace(shape=shape, strides=strides))
        builder.launch("determinant", lu, factors.pivots, factors.info, turned, size)
    if is_plain:
        builder.launch("product", turned, size, sign)


# --- decompositions --------------------------------------------------------------------------------------------------


def _qr(builder: _LinearBuilder, given: Given, results: Results) -> None:
    mode, a = given.get("mode", "reduced"), given["a"]
    row, (*stack, rows, columns) = results[0].form.row, a.form.shape
    few = min(rows, columns)
    wanted = rows if mode == "complete" else few
    if not few:
        if mode == "complete":
            builder.launch("identity", results[0])
        return
    if _is_empty(a):
        return
    count, width = prod(stack), max(columns, wanted)
    room = builder.matrices((*stack, rows, width), row, "F")
    builder.copy(a, room.of(a.form.shape))
    factors = builder.room((*stack, few), row)
    step = rows * width
    builder.solve(
        solvers.reflectors(builder.stack(row, rows, columns, count), step), room, factors, info=builder.info(count)
    )
    if mode == "raw":
        builder.copy(_turned(room), results[0])
        builder.copy(factors, results[1])
        return
    builder.launch("upper", room.of((*stack, wanted, columns)), results[-1])
    if mode != "r":
        routine = solvers.orthogonal(builder.stack(row, rows, wanted, count), few, step)
        builder.solve(routine, room, factors, info=builder.info(count))
        builder.copy(room.of((*stack, rows, wanted)), results[0])


def _singular(builder: _LinearBuilder, given: Given, results: Results) -> None:
    """svd, and svdvals, whose only result is the values."""
    a = given.get("a", given.get("x"))
    *stack, rows, columns = a.form.shape
    has_vectors, is_full = len(results) == 3, given.get("full_matrices", True)
    values = results[len(results) // 2]
    if not prod(stack):
        return
    if not min(rows, columns):
        for each in results[::2] if has_vectors else ():
            builder.launch("identity", each)
        return
    text, count = "SVD did not converge", prod(stack)
    made, _ = builder.target(values, "C")
    row = dtypes.complex_type(values.form.row) if a.form.row.is_complex else values.form.row
    info, left, right = builder.info(count), made, made
    is_wide = rows < columns
    room = builder.loaded(a, row, "C" if is_wide else "F")
    tall, few = max(rows, columns), min(rows, columns)
    letter = "N" if not has_vectors else "A" if is_full else "S"
    routine = solvers.singular_values(builder.stack(row, tall, few, count), letter)
    if has_vectors:
        left = builder.matrices((*stack, tall, tall if is_full else few), row, "F")
        right = builder.matrices((*stack, few, few), row, "F")
    builder.solve(routine, room, made, left, right, info=info, text=text)
    if has_vectors:
        pair = (_turned(right), _turned(left)) if is_wide else (left, right)
        builder.copy(pair[0], results[0])
        builder.copy(pair[1], results[2])
    builder.settle(made, values)


def _hermitian(builder: _LinearBuilder, given: Given, results: Results) -> None:
    """eigh, and eigvalsh, whose only result is the values."""
    a, values = given["a"], results[0]
    if _is_empty(a):
        return
    size, count = a.form.shape[-1], prod(a.form.shape[:-2])
    row = dtypes.complex_type(values.form.row) if a.form.row.is_complex else values.form.row
    made, _ = builder.target(values, "C")
    room = builder.loaded(a, row, "F")
    is_upper = str(given.get("UPLO", "L")).upper() == "U"
    has_vectors, at_once = len(results) > 1, count if size * size * count < _MOST_ELEMENTS else 1
    for start in range(0, count, at_once):
        routine = solvers.eigenvalues(builder.stack(row, size, size, at_once), is_upper, has_vectors)
        first, other = (
            each.of(each.form.shape, start * step * each.form.row.nbytes)
            for each, step in ((room, size**2), (made, size))
        )
        builder.solve(routine, first, other, info=builder.info(at_once), text="Eigenvalues did not converge")
    if has_vectors:
        builder.copy(room, results[1])
    builder.settle(made, values)


def general(forms: Sequence[Any], device: int) -> Recipe:
    """Eigenvalues of any square matrices. forms: of these, of complex values, and of right vectors if wanted.

    Raises CudaMathMissing, CudaMathRefused.
    """
    builder = _LinearBuilder(forms, device)
    a, values, *vectors = map(builder.whole, range(len(forms)))
    if _is_empty(a):
        return builder.made()
    size, count = a.form.shape[-1], prod(a.form.shape[:-2])
    row = values.form.row if a.form.row.is_complex else dtypes.real_type(values.form.row)
    room = builder.loaded(a, row, "F")
    right = builder.matrices(a.form.shape, row, "F") if vectors else values
    routine = solvers.general_eigenvalues(builder.stack(row, size, size, count), bool(vectors))
    text = "Eigenvalues did not converge"
    builder.solve(routine, room, values, values, right, info=builder.info(count), text=text)
    for each in vectors:
        if row.is_complex:
            builder.copy(right, each)
        else:
            value = values.form._replace(
                shape=a.form.shape, strides=(*values.form.strides[:-1], 0, values.form.strides[-1])
            )
            builder.launch("pairs", values._replace(form=value), right, each)
    return builder.made()


_RECIPES: dict[str, Callable[[_LinearBuilder, Given, Results], None]] = {
    "np.linalg.cholesky": _cholesky, "np.linalg.inv": _inverse, "np.linalg.solve": _solution,
    "np.linalg.det": _determinant, "np.linalg.slogdet": _determinant, "np.linalg.qr": _qr,
    "np.linalg.svd": _singular, "np.linalg.svdvals": _singular, "np.linalg.eigh": _hermitian,
    "np.linalg.eigvalsh": _hermitian, "np.linalg.cond": _inverse_or_nan,
}  # fmt: skip
