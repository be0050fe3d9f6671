"""Fused functions take the functions of the array API standard but those whose sizes depend on values."""

from __future__ import annotations

import numpy as np
import pytest

import fusec
from fusec.frontends.python.functions import FUNCTIONS as SCALAR_FUNCTIONS
from fusec.fusion.trace.elementwise import SEVERAL
from fusec.fusion.trace.tables import CREATION, FUNCTIONS

STANDARD = """
arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like tril triu zeros
zeros_like astype can_cast finfo iinfo isdtype result_type
abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert bitwise_or
bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1 floor floor_divide greater
greater_equal hypot imag isfinite isinf isnan less less_equal log log1p log2 log10 logaddexp logical_and logical_not
logical_or logical_xor maximum minimum multiply negative nextafter not_equal positive pow real reciprocal remainder
round sign signbit sin sinh square sqrt subtract tan tanh trunc
take take_along_axis matmul matrix_transpose tensordot vecdot
broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack tile
unstack argmax argmin count_nonzero nonzero searchsorted where unique_all unique_counts unique_inverse unique_values
argsort sort cumulative_prod cumulative_sum max mean min prod std sum var all any diff
linalg.cholesky linalg.cross linalg.det linalg.diagonal linalg.eigh linalg.eigvalsh linalg.inv linalg.matmul
linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.matrix_transpose linalg.outer linalg.pinv linalg.qr
linalg.slogdet linalg.solve linalg.svd linalg.svdvals linalg.tensordot linalg.trace linalg.vecdot linalg.vector_norm
fft.fft fft.ifft fft.fftn fft.ifftn fft.rfft fft.irfft fft.rfftn fft.irfftn fft.hfft fft.ihfft fft.fftfreq fft.rfftfreq
fft.fftshift fft.ifftshift
""".split()
OF_NUMBERS = frozenset("from_dlpack finfo iinfo isdtype".split())
OF_VALUES = frozenset("nonzero unique_all unique_counts unique_inverse unique_values".split())


def _is_known(name: str) -> bool:
    found = np
    for part in name.split("."):
        found = getattr(found, part)
    if isinstance(found, np.ufunc):
        return found.signature is not None or found.__name__ in SCALAR_FUNCTIONS or found.__name__ in SEVERAL
    return name in FUNCTIONS or (callable(found) and found in CREATION)


def test_the_standard_is_fused() -> None:
    assert fusec.fuse(lambda x: x)(np.ones(1)).all()
    assert {name for name in STANDARD if not _is_known(name)} == OF_NUMBERS | OF_VALUES


@pytest.mark.parametrize("name", ["sinc", "i0"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "float32"])
def test_functions_of_floats_make_float64_of_narrow_integers(name, dtype):
    x, function = np.array([0, 1, 1], dtype), getattr(np, name)
    found = fusec.fuse(lambda x: function(x))(x)
    assert found.dtype == function(x).dtype
    np.testing.assert_allclose(found, function(x), rtol=1e-6, atol=1e-6)
