"""Kernels written by hand, with the slots a code generator would give them."""

from fusec.base.dtypes import (
    BFLOAT16,
    BOOL,
    COMPLEX64,
    COMPLEX128,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT64,
    UINT64,
    DType,
)
from fusec.base.kernel_abi import Kernel, Layout, Slot, Step

INDEX = (
    "for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n;"
    " i += (long long)gridDim.x * blockDim.x)"
)
COMPLEX_TYPES = "struct c64 { float re, im; };\n"


def kernel(name: str, parameters: str, body: str, slots: tuple[Slot, ...], lanes: int = 1) -> Kernel:
    source = f'{COMPLEX_TYPES}extern "C" __global__ void {name}({parameters}) {{ {body} }}\n'
    return Kernel(name, "cuda", slots, source, Layout(1, (("x", (Step.UNIT,)),)), lanes)


def pointer(param: str, dtype: DType) -> Slot:
    return Slot("pointer", param, 0, dtype)


def scalar(param: str, dtype: DType, part: int = 0) -> Slot:
    return Slot("scalar", param, part, dtype)


SIZE = Slot("size", "", 0, INT64)

AXPY = kernel(
    "axpy",
    "long long n, const float *x, float *y, float a",
    INDEX + " y[i] = a * x[i] + y[i];",
    (SIZE, pointer("x", FLOAT32), pointer("y", FLOAT32), scalar("a", FLOAT32)),
)
COUNT = kernel(  # how often every element is visited
    "count", "long long n, int *z", INDEX + " z[i] += 1;", (SIZE, pointer("z", INT64))
)
STRIDED = kernel(
    "strided",
    "long long n, const char *x, long long step, double *z",
    INDEX + " z[i] = *(const double *)(x + i * step);",
    (SIZE, pointer("x", FLOAT64), Slot("stride", "x", 0, INT64), pointer("z", FLOAT64)),
)
SCALARS = kernel(  # every width of argument, written out as bits
    "scalars",
    "unsigned char *z, bool b, signed char s, unsigned long long u, unsigned short h, unsigned short g,"
    "float f, double d, c64 c, double re, double im",
    "memcpy(z, &b, 1); memcpy(z + 8, &s, 1); memcpy(z + 16, &u, 8);"
    "memcpy(z + 24, &h, 2); memcpy(z + 32, &g, 2); memcpy(z + 40, &f, 4);"
    "memcpy(z + 48, &d, 8); memcpy(z + 56, &c, 8); memcpy(z + 64, &re, 8);"
    "memcpy(z + 72, &im, 8);",
    (
        pointer("z", INT8),
        scalar("b", BOOL),
        scalar("s", INT8),
        scalar("u", UINT64),
        scalar("h", FLOAT16),
        scalar("g", BFLOAT16),
        scalar("f", FLOAT32),
        scalar("d", FLOAT64),
        scalar("c", COMPLEX64),
        scalar("k", COMPLEX128, 0),
        scalar("k", COMPLEX128, 1),
    ),
)
ALL = (AXPY, COUNT, STRIDED, SCALARS)
