"""A mistake and its correction for the most common errors; ``fusec explain CODE`` shows them.

A text gives the reason, then lines to try, with ``np``, names of fusec such as ``ElementwiseKernel``, and ``out``, an
array of three float64.
"""

from fusec.errors.language_examples import LANGUAGE
from fusec.errors.python_examples import PYTHON

EXAMPLES: dict[str, str] = {
    **LANGUAGE,
    **PYTHON,
    "F380": """\
A checked kernel looks at every index before it uses it.

    after = ElementwiseKernel("raw T x", "float64 z", "z = x[i + 1]", "after", bounds="check")
    after(np.ones(3), out)       # wrong: the last element reads x[3]
    after(np.ones(4), out)       # right""",
    "F381": """\
Assertions have an effect only in checked kernels.

    root = elementwise("def root(x):\\n    assert x >= 0\\n    return np.sqrt(x)", bounds="check")
    root(np.array([4.0, -4.0]))      # wrong
    root(np.array([4.0, 9.0]))       # right""",
    "F382": """\
The bounds of a pointer are unknown once it has been moved.

    moved = ElementwiseKernel("raw T x", "float64 z", "const T* p = &x[0]; z = p[i]", bounds="check")
    moved(np.ones(3), out)       # wrong
    ElementwiseKernel("raw T x", "float64 z", "z = x[i]", bounds="check")(np.ones(3), out)     # right""",
    "F383": """\
Checks are on or off.

    elementwise("def f(x): return x", bounds="yes")          # wrong
    elementwise("def f(x): return x", bounds="check")        # right""",
    "F200": """\
A call gives all inputs, or all inputs and all outputs.

    add = ElementwiseKernel("float64 x, float64 y", "float64 z", "z = x + y", "add")
    add(np.ones(3))              # wrong: the second input is missing
    add(np.ones(3), 2)           # right: z is allocated
    add(np.ones(3), 2, out)      # right: z is written to `out`""",
    "F202": """\
Arrays are NumPy arrays, objects with DLPack, __cuda_array_interface__ or __array__, and lists of numbers.
Masked arrays are refused, since the mask would be lost.

    negate = ElementwiseKernel("float64 x", "float64 z", "z = -x", "negate")
    negate({1.0, 2.0})               # wrong: a set has no order
    negate([1.0, 2.0])               # right""",
    "F204": """\
Arrays are never converted silently: a declared dtype is required, and a placeholder stands for one dtype in a
call. Python numbers take the type of their parameter.

    add = ElementwiseKernel("T x, T y", "T z", "z = x + y", "add")
    add(np.ones(3), np.ones(3, "float32"))                       # wrong: T would be two dtypes
    add(np.ones(3), np.ones(3, "float32").astype("float64"))     # right
    add(np.ones(3), np.ones(3), np.empty(3, "float32"))          # wrong: the inputs make T float64
    add(np.ones(3), 1)                                           # right""",
    "F205": """\
A placeholder gets its dtype from an array; numbers have none of their own.

    fill = ElementwiseKernel("int64 x", "T z", "z = x", "fill")
    fill(np.arange(3))               # wrong: nothing determines T
    fill(np.arange(3), out)          # right: T is the dtype of `out`
    ElementwiseKernel("int64 x", "float64 z", "z = x", "fill")(np.arange(3))     # right: no placeholder""",
    "F206": """\
The dtypes are bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, float64, complex64,
complex128 and the two 8-bit floats float8_e4m3fn and float8_e5m2. Arguments in the byte order of other
machines are converted, outputs are not.

    twice = ElementwiseKernel("T x", "T z", "z = x + x", "twice")
    twice(np.ones(3, "longdouble"))                       # wrong
    twice(np.ones(3, "longdouble").astype("float64"))     # right
    twice(np.ones(3), np.empty(3, ">f8"))                 # wrong: the output is in another byte order
    twice(np.ones(3, ">f8"))                              # right""",
    "F212": """\
Shapes broadcast from the last axis on, as in NumPy: two lengths must be equal, or one of them must be 1.

    add = ElementwiseKernel("float64 x, float64 y", "float64 z", "z = x + y", "add")
    add(np.ones((4, 3)), np.ones(4))             # wrong: 3 and 4
    add(np.ones((4, 3)), np.ones(4)[:, None])    # right: (4, 3) and (4, 1)
    add(np.ones((4, 3)), np.ones(3))             # right""",
    "F213": """\
An output has exactly the shape to which the inputs broadcast.

    add = ElementwiseKernel("float64 x, float64 y", "float64 z", "z = x + y", "add")
    add(np.ones((4, 1)), np.ones(3), np.empty(3))         # wrong
    add(np.ones((4, 1)), np.ones(3), np.empty((4, 3)))    # right""",
    "F214": """\
The loop runs over the shape of the arrays that are not raw; `size=` is for kernels where all arrays are
raw.

    first = ElementwiseKernel("float64 x", "float64 z", "z = x", "first")
    first(np.ones(9), size=3)     # wrong
    first(np.ones(9)[:3])         # right""",
    "F215": """\
The operation indexes raw arrays itself, so their shapes do not determine how often it runs.

    pairs = ElementwiseKernel("raw float64 x", "raw float64 z", "z[i] = x[2 * i] + x[2 * i + 1]", "pairs")
    pairs(np.ones(8), np.empty(4))             # wrong
    pairs(np.ones(8), np.empty(4), size=4)     # right""",
    "F216": """\
The size of a raw output is independent of the loop.

    copy = ElementwiseKernel("float64 x", "raw float64 z", "z[i] = x", "copy")
    copy(np.ones(8))                  # wrong
    copy(np.ones(8), np.empty(8))     # right""",
    "F219": """\
Numbers are checked, not wrapped.

    dim = ElementwiseKernel("uint8 x, uint8 by", "uint8 z", "z = x - by", "dim")
    dim(np.ones(3, "uint8"), 300)     # wrong: the largest uint8 is 255
    dim(np.ones(3, "uint8"), 255)     # right""",
    "F220": """\
A number is refused, not truncated, if the type of its parameter would lose a part of it.

    shift = ElementwiseKernel("int32 x, int32 by", "int32 z", "z = x + by", "shift")
    shift(np.ones(3, "int32"), 2.5)            # wrong
    shift(np.ones(3, "int32"), round(2.5))     # right""",
    "F222": """\
Several elements at one address cannot all be written.

    twice = ElementwiseKernel("float64 x", "float64 z", "z = x + x", "twice")
    twice(np.ones(3), np.lib.stride_tricks.as_strided(np.empty(1), (3,), (0,)))     # wrong
    twice(np.ones(3), np.empty(3))                                  # right""",
    "F226": """\
A text is generated for certain dtypes; a placeholder has no dtype before a call.

    twice = ElementwiseKernel("T x", "T z", "z = x + x", "twice")
    twice.source("cuda")                              # wrong
    twice.source("cuda", types={"T": "float32"})      # right; on the command line --types T=float32""",
    "F232": """\
The number of axes is known only at a call, so the call raises this error.

    width = ElementwiseKernel("raw float64 x", "int64 z", "z = x.shape()[1]", "width")
    width(np.ones(6), size=1)             # wrong: no axis 1
    width(np.ones((2, 3)), size=1)        # right""",
    "F280": """\
A fused function is called once with stand-ins for arrays, which have shapes and dtypes, but no values. So it cannot
branch on values, print them or loop until they are small: choose element by element, and return what the caller is
to look at.

    fuse(lambda x: x if x.sum() > 0 else -x)(out)                  # wrong
    fuse(lambda x: np.where(x.sum() > 0, x, -x))(out)              # right
    fuse(lambda x: np.where(0 < x < 1, x, 0))(out)                 # wrong: Python asks for one truth value
    fuse(lambda x: np.where((0 < x) & (x < 1), x, 0))(out)         # right
    fuse(lambda x: print(x.mean()))(out)                           # wrong
    print(fuse(lambda x: x.mean())(out))                           # right
    fuse(lambda x: float(x.sum()) * x)(out)                        # wrong
    fuse(lambda x: x.sum() * x)(out)                               # right""",
    "F281": """\
What has a size that depends on values cannot be fused, and neither can functions of other libraries. Keep masks as
they are, and call the rest before or after the fused function.

    fuse(lambda x: x[x > 0])(out)                                  # wrong: how many there are depends on values
    fuse(lambda x: np.where(x > 0, x, 0))(out)                     # right
    fuse(lambda x: x[x > 0].sum())(out)                            # right: one number for any mask
    fuse(lambda x: np.unique(x) * 2)(out)                          # wrong
    fuse(lambda x: x * 2)(np.unique(out))                          # right""",
    "F282": """\
Arguments and results are arrays, numbers, constants such as texts, objects of classes written in Python, and tuples,
lists and dictionaries of these.

    fuse(lambda x: sum(x))(iter(out))                              # wrong
    fuse(lambda x: sum(x))(list(out))                              # right
    fuse(lambda x: (each * 2 for each in x))(out)                  # wrong: a generator
    fuse(lambda x: [each * 2 for each in x])(out)                  # right""",
    "F700": """\
Work on arrays is recorded once and runs at every call; other changes would happen only when it is recorded.

    seen = []
    fuse(lambda x: seen.append(x * 2))(np.ones(3))      # wrong: later calls would append nothing
    seen.append(fuse(lambda x: x * 2)(np.ones(3)))      # right""",
    "F320": """\
    third = ElementwiseKernel("float32 x", "float32 z", "z = x * 0.3", "third")
    third.source("metal")     # wrong: 0.3 is float64
    ElementwiseKernel("float32 x", "float32 z", "z = x * 0.3f").source("metal")     # right""",
    "F321": """\
Each target has atomic updates for some dtypes only; the CPU has all those of the language.

    total = ElementwiseKernel("int64 x", "raw int64 sum", "atomicAdd(&sum[0], x)", "total")
    total.source("metal")     # wrong
    ElementwiseKernel("int32 x", "raw int32 sum", "atomicAdd(&sum[0], x)").source("metal")     # right""",
}
