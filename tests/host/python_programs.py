"""Functions in Python: data-dependent loops, tuples, device functions and every border of stencils."""

import numpy as np
from programs import Case

from fusec import passes
from fusec.base.dtypes import BY_NAME, from_numpy
from fusec.frontends.capture import closure
from fusec.frontends.python.definition import Border, FunctionText, PythonDefinition
from fusec.frontends.python.lower import infer, lower
from fusec.passes.bounds import WORDS, check_bounds
from fusec.passes.resolve import resolve_axes

ESCAPE = """
def escape(x, y):
    re, im = x, y
    for n in range(30):
        if re * re + im * im > 4:
            return n, re
        re, im = re * re - im * im + x, 2 * re * im + y
    return 30, re
"""
BRANCHES = """
def branches(i, j, x):
    total = 0
    while True:
        total += i // j
        if total > 9 or x < total:
            rest = total % 5
            break
        i, j = i + 3, j - 1
        if i < 0 <= j:
            continue
        x = abs(x) - 1
    if rest == 2:
        return np.minimum(x, rest), i ** 2
    elif x != x:
        return x, i
    return np.floor(x / 2), i & j
"""
WINDOW = """
def window(a, b):
    left, right = a[0, -2], b[-1, 1]
    if left < right:
        return left - 3 * a[2, 0]
    return right + a
"""

SOLID = """
def solid(a):
    return a[-1, 2, 1] - 3 * a[1, -1, 0] + a[0, 0, -2]
"""


FIVE = """
def five(a):
    total = 0 * a[0, 0]
    for i in range(-2, 3):
        for j in range(-2, 3):
            total += a[i, j] * ((3 - abs(i)) * (3 - abs(j)))
    return total, (a[0, 1] - a[-1, 0]) / 3
"""

SEVEN = """
def seven(a):
    return a[-1, 0, 0] + a[1, 0, 0] + a[0, -1, 0] + a[0, 1, 0] + a[0, 0, -1] + a[0, 0, 1] - a[0, 0, 0] * 6
"""

UPWARDS = """
def upwards(a):
    return a[-1, 0] - a[0, 0] * 2 + a[2, 3]
"""

SWEEP = """
def sweep(image, out, total, reach):
    rows, columns = image.shape
    for i, j in fusec.grid((rows, columns - 1)):
        kept = fusec.local((2, 3), np.float32)
        for k in range(3):
            kept[k % 2, k] = image[i, (j + k) % columns]
        if kept[0, 0] < 0:
            continue
        k = 0
        while k < reach and i + k < rows and image[i + k, j] > -50:
            kept[1, 1] += image[i + k, j]
            k += 1
        assert k <= reach
        u = fusec.random.uniform32(7, i * columns + j)
        out[i, j] = kept[0, 0] + kept[1, 1] * 2 + kept[0, 2] + u
        if j == 0:
            total.flat[i] = fusec.random.integers(7, i, 0, 100)
"""


TABLES = """
def tables(i, x):
    total = x * 0
    for k, w in enumerate(WEIGHTS):
        if np.float32(w) > x:
            break
        total += np.float32(w) * ODD[i + k]
    for row in ROWS:
        total += row[i] * x
    for v, flag in ((1, True), (2, False)):
        if flag == BOOLS[i]:
            continue
        total += LONG[i * v]
    near = BYTES[i] + np.float32(WEIGHTS[i])
    return total, BYTES[i] + WIDE[i - 1], near, ODD[i], (x, 2 * x, total)[i % 3]
"""
TABLE_NAMES = {
    "np": np,
    "WEIGHTS": (0.5, 0.25, 4),
    "ODD": np.array([np.nan, -0.0, 1e-45, -np.inf, 1.5], "float32"),
    "ROWS": np.arange(6, dtype="float32").reshape(2, 3),
    "LONG": np.linspace(0, 1, 70, dtype="float32"),
    "BOOLS": np.array([True, False, True, True]),
    "BYTES": np.arange(250, 256, dtype="uint8"),
    "WIDE": np.array([2**63, 2**64 - 1, 7], "uint64"),
}


WRAPS = """
def scaled(a):
    if a > 1000:
        return a
    return a * 7

def wraps(i, j, x):
    b = np.int16(j) + np.int8(x)
    return i * 4 + scaled(i), (b << 2) - abs(j), np.uint8(abs(x))
"""


def python_cases() -> list[Case]:
    """Elementwise functions, and stencils over arrays from one element to more than a block."""
    rng = np.random.default_rng(7)
    floats = [rng.uniform(-2, 2, 150).astype("float32") for _ in range(2)]
    integers = [rng.integers(-50, 50, 150).astype(dtype) for dtype in ("int16", "int8")]
    found = [
        _case("python escape", ESCAPE, {"x": floats[0], "y": floats[1]}, 2),
        _case("python branches", BRANCHES, {"i": integers[0], "j": integers[1], "x": floats[0] * 9}, 2),
    ]
    found.append(_case("python tables", TABLES, {"i": integers[0], "x": floats[0]}, 5, names=TABLE_NAMES))
    for mode in ("constant", "nearest", "reflect", "mirror", "wrap", "skip"):
        for shape in ((1, 2), (21, 19)):  # 21 rows hold a strip of eight in the interior
            a, b = (rng.integers(-99, 99, shape).astype(dtype) for dtype in ("float32", "int16"))
            border = ((mode,), ("python", -7), ())
            found.append(_case(f"python {mode} {shape}", WINDOW, {"a": a, "b": b.T.copy().T}, 1, border))
    solid = rng.integers(-99, 99, (3, 19, 4)).astype("float32")
    borders = (("wrap", "nearest", "mirror"), ("python", 0), ())
    found.append(_case("python solid", SOLID, {"a": solid}, 1, borders))
    found += _stencil_cases(rng)
    for shape in ((1, 2), (11, 19)):
        image = rng.integers(-99, 99, shape).astype("float32")
        found += [_explicit_case(f"python sweep {shape}{' checked' * each}", image, each) for each in (False, True)]
    large = rng.integers(-50, 50, 150)
    large[97] = 2**62  # the one that wraps, so that every target notes the same
    arrays = {"i": large, "j": integers[1].astype("int16"), "x": floats[0] * 40}
    found.append(_case("python wraps", WRAPS, arrays, 3, names={"np": np}, checks="wrap"))
    return found


def _stencil_cases(rng: np.random.Generator) -> list[Case]:
    """Stencils of which threads take rows and columns: lines that words divide, lines that they do not, no strip."""
    found = []
    for dtype, shape, mode in (
        ("float32", (13, 32), "nearest"),
        ("float32", (12, 35), "wrap"),
        ("float32", (9, 7), "constant"),
        ("float64", (11, 34), "mirror"),
        ("uint8", (10, 36), "reflect"),
        ("int16", (10, 41), "nearest"),
        ("complex128", (9, 12), "constant"),
    ):
        a = rng.integers(0, 99, shape).astype(dtype)
        found.append(_case(f"python five {dtype} {shape}", FIVE, {"a": a}, 2, ((mode,), ("python", 1), ())))
    for dtype, shape in (("float32", (4, 6, 20)), ("int8", (3, 5, 23)), ("float64", (5, 2, 16))):
        a = rng.integers(-9, 9, shape).astype(dtype)
        found.append(_case(f"python seven {dtype} {shape}", SEVEN, {"a": a}, 1, (("wrap",), ("python", 0), ())))
    for mode, shape in (("skip", (14, 26)), ("wrap", (3, 24))):
        a = rng.integers(-9, 9, shape).astype("float32")
        found.append(_case(f"python upwards {mode} {shape}", UPWARDS, {"a": a}, 1, ((mode,), ("python", 0), ())))
    return found


def _explicit_case(name: str, image: np.ndarray, checked: bool) -> Case:
    """An explicit kernel, as it is or with checks, which find nothing."""
    captured = closure.capture(closure.Text(SWEEP, {"np": np}), {})
    rows, columns = image.shape
    arrays = {"image": image, "out": np.zeros(image.shape, "float32"), "total": np.zeros(rows, "int64")}
    axes = tuple((each, array.ndim, each != "image") for each, array in arrays.items())
    definition = PythonDefinition("sweep", captured.functions, (), arrays=axes, checked=checked)
    types = {each: from_numpy(array.dtype) for each, array in arrays.items()} | {"reach": BY_NAME["int64"]}
    ndims = {each: array.ndim for each, array in arrays.items()}
    program = lower(definition, types, frozenset({"reach"}), ndims)
    if checked:
        program, _ = check_bounds(program)
        arrays["fusec_fault"] = np.zeros(WORDS, "uint32")
    program = passes.run(resolve_axes(program, {"": 2, **ndims}))
    return Case(name, program, arrays, (rows, max(columns - 1, 0)), {"reach": 4})


def _case(
    name: str,
    text: str,
    arrays: dict[str, np.ndarray],
    count: int,
    border: Border | None = None,
    names: dict[str, object] | None = None,
    checks: str = "",
) -> Case:
    function = text.split("(")[0].split()[-1]
    outputs = tuple(f"out{at}" for at in range(count))
    indexed = tuple(arrays) if border is not None else ()
    functions: tuple[FunctionText, ...] = (FunctionText(function, function, name, 1, text),)
    if names is not None:
        functions = closure.capture(closure.Text(text, names), {}).functions
    definition = PythonDefinition(function, functions, outputs, indexed=indexed, border=border)
    types = {each: from_numpy(array.dtype) for each, array in arrays.items()}
    shape = next(iter(arrays.values())).shape
    ndims = {each: len(shape) for each in indexed}
    results = infer(definition, types, ndims).results
    program = lower(definition, types | dict(zip(outputs, results, strict=True)), frozenset(), ndims)
    made = {each: np.zeros(shape, dtype.numpy) for each, dtype in zip(outputs, results, strict=True)}
    if checks:
        program, _ = check_bounds(program, checks)
        made["fusec_fault"], ndims["fusec_fault"] = np.zeros(WORDS, "uint32"), 1
    program = passes.run(resolve_axes(program, {"": len(shape), **ndims}))
    return Case(name, program, {**arrays, **made}, shape)
