"""Writes docs/python.md, which describes the Python subset: its grammar, functions and refusals.

Run ``python tools/python_docs.py`` after a change of grammar/python.lark or of the tables; a test compares the page.
"""

import re
import textwrap
from pathlib import Path

from fusec.base.dtypes import BY_NAME
from fusec.frontends.python import functions, syntax_errors
from fusec.frontends.python.names import HABITS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "python.md"

HEAD = """\
# Kernels in Python: the subset

<!-- written by tools/python_docs.py -->

```python
import numpy as np
import fusec

SCALE = 0.7071067811865476

@fusec.elementwise
def gelu(x):
    return 0.5 * x * (1 + erf(x * SCALE))

gelu(np.linspace(-2, 2, 5, dtype="float32"))
```

A decorated function describes *one* element. It takes scalars and returns a scalar or a tuple.
fusec parses its source by the grammar below and compiles it for the dtypes of each call; the
function is never run. Calls take arrays that broadcast, of [any library](arguments.md), lists, and
numbers, by position or by name. `out=` takes the array for the result, or a tuple of arrays. As in
CuPy's kernels, these arrays may also follow the inputs by position: `gelu(x, y)` writes `y`. A
tuple may come from another function, as in `return divmod(x, y)`. If no argument is an array, the
result is a NumPy scalar.

Functions are read from their source. Files, notebooks and IPython keep the source; the plain
prompt of Python 3.11 does not. `fusec.elementwise("def f(x): ...")` takes the text of a function
instead. Functions that it calls may stand before it in the text, and `names=` gives the values of
its free names. `fusec.elementwise(lambda x: ...)` takes a lambda.

The options are `name=`, which appears in messages and is the entry point, and `fp=`. A function
has `source(target)` and `explain(*args)`, and pickles by its source.

## Types

- Types are inferred at every call. An annotation fixes the type of a parameter: `x: float32`,
  `x: np.float32` or `x: "float32"`. It also fixes the type of the result, `-> float32`, and of a
  variable, `t: float32 = x / 3`, which converts. Annotations with classes of arrays fix no type:
  `x: np.ndarray`, `x: NDArray[np.float32]`, or an alias such as `Image = NDArray[np.float32]`.
- Arithmetic follows NumPy 2 type promotion: `/` divides truly, `//` and `%` round down,
  `int8 + int16` is int16. Python numbers, including those passed as arguments, adapt to the dtype
  of the other operand (NEP 50). An integer that the dtype cannot hold is an error.
- `float()`, `int()`, `bool()` and `complex()` make Python numbers, whose integers have 64 bits
  here. Functions of Python numbers alone give Python numbers; np.sqrt(2) does too.
- A variable may change its type by assignment, `x = x / 255`, but not on one branch only. Where
  branches meet after an `if`, and from one iteration of a loop to the next, a variable has one
  dtype; a Python number there becomes a value of that dtype. The same holds for the results of a
  function. `a if test else b`, `and` and `or` have the type that np.where gives them.
- float16, bfloat16 and the 8-bit floats compute in float32 and round once: at the store, or where
  they are converted. A Python number that meets them is rounded to their dtype first, as in NumPy:
  `x / 0.1` of a float16 `x` divides by `np.float16(0.1)`.
- Integers wrap. Division of an integer by zero gives 0. A float that is too large for an integer
  saturates, and nan gives 0. Complex numbers cannot be compared by order, although NumPy does so.
- `for i in range(start, stop, step)` counts in int64. A uint64 of 2**63 or more wraps, so it is no
  useful bound. With steps other than 1 and -1 the counter passes `stop` by less than a step, which
  must not take it beyond int64. If the numbers are known when a kernel is compiled, this is an
  error; otherwise the loop continues from the other end.
- A dtype is known when a kernel is compiled: `np.float32`, `np.dtype("f")`, `x.dtype`, also under
  another name. Calling a dtype converts: `x.dtype.type(1)`. `if x.dtype == np.float32:` compiles
  one of the two branches. NumPy's ufuncs take `dtype=` by NumPy's rules:
  `np.add(x, y, dtype="float32")` converts the operands to the same kind of numbers or a wider one.

The dtypes are{dtypes}.

## Names

Names from outside are looked up when the function is decorated. A name that does not exist yet is
looked up at each call until it exists. From then on these names are constants. They may stand for
numbers, NumPy scalars, dtypes, functions, tuples and lists of these, and arrays, which are copied.
Attributes of objects are constants too, if they end in one of these: `settings.scale` or
`table.shape[0]`.

Plain Python functions and decorated ones may be called, by position and by name. They are compiled
into the kernel, so they must belong to the same subset, and must not call themselves. Defaults are
constants too: a call that omits an argument runs a kernel compiled for its default.

A function may be defined inside another. It may use the variables of the outer function, with
their values at the call. It may be passed to functions, but not returned. A function that consists
of a single `return` is expanded where it is called, so it may index the arrays of a stencil.

`fusec.vectorize` is called like `numpy.vectorize`: lists are arrays, and `otypes=` converts the
results.

## Tuples and tables

```python
GAMMA = np.linspace(0, 1, 256, dtype="float32") ** 2.2
PALETTE = np.array([[0, 0, 0], [255, 128, 0], [255, 255, 255]], "float32")

@fusec.elementwise
def shade(pixel, kind):                     # integers
    red, green, blue = PALETTE[kind]
    return GAMMA[pixel] * red, GAMMA[pixel] * green, GAMMA[pixel] * blue
```

Tuples, and arrays and lists from outside, take any integer as an index; negative ones count from
the end. An array has `.shape`, `.size`, `.ndim`, `.dtype` and `len`. It may have several axes,
`a[i, j]` or `a[i][j]`, and may be passed to functions. Its values are those at the time of
decoration; later changes have no effect. It has at most 4096 elements; pass a larger array as an
argument of an [explicit kernel](#explicit-kernels). Items that an index selects at run time have
one type, by the rule for variables. An index out of range selects the nearest item. With
`FUSEC_CHECK=bounds` it is an error that gives the line and the element.

`for` iterates over tuples and arrays, also through `enumerate`, `zip` and `reversed`, which take a
`range` of known numbers too. Up to 64 iterations are unrolled, so each value is known in its
iteration, as in `for k in (1, 2): x = x ** k`.

## Stencils

```python
@fusec.stencil(boundary="reflect")
def laplacian(a):
    return a[-1, 0] + a[1, 0] + a[0, -1] + a[0, 1] - 4 * a[0, 0]
```

An indexed parameter is an array whose neighbours the function reads. `a[-1, 0]` is the neighbour
before the element along the first axis; `a` and `a[0, 0]` are the element itself. A kernel may
combine several arrays, all of the shape of the result, numbers, arrays that broadcast, and
everything that an element-wise function may use. There are as many offsets as axes, or as many as
`axes=` names.

`boundary=`, one value for all axes or a tuple, defines the elements outside of the array. For a
row `a b c d` they are

| boundary | to the left | to the right | |
|---|---|---|---|
| `"constant"` | k k k k | k k k k | k is `cval=`, 0 by default; integers and bool hold it exactly, floats round it |
| `"nearest"` | a a a a | d d d d | |
| `"reflect"` | d c b a | d c b a | |
| `"mirror"` | d c b | c b a | |
| `"wrap"` | a b c d | a b c d | |
| `"skip"` | | | elements without a neighbour are skipped: 0 in a new output, unchanged in a given one |

as in scipy.ndimage. Other names are `"edge"` (nearest), `"symmetric"` and `"grid-mirror"`
(reflect), `"grid-wrap"` (wrap) and `"grid-constant"` (constant). Results of small integers wrap,
as NumPy's do. Weights that a loop iterates over are a tuple, or an array from outside.

The function is compiled twice: for elements whose neighbours all exist, and for those at the
border. The offsets of a loop over known numbers are known:
`for k in range(-2, 3): total += a[k] * weights[k + 2]`. Other offsets, such as an argument, are
looked up as at the border, and `"skip"` refuses them. Offsets reach 2**31 in either direction;
known offsets beyond that are refused.

## Explicit kernels

`fusec.kernel` compiles a loop over `fusec.grid(...)` to a kernel that indexes its arrays itself.
[kernels.md](kernels.md) describes these kernels, with local arrays, atomic updates, blocks that
share arrays and wait at barriers, random numbers, checks of bounds and assertions, and
`fusec.simulate`.

## Reductions

`fusec.reduction` makes a reduction of arrays from a function that combines two totals. Further
functions map the elements and finish the totals;
[reductions.md](reductions.md#reductions-in-python) describes them. `a if test else b` may choose
between two tuples with the same number of parts.

## Functions

Functions have the names of NumPy, the Array API, `math`, `scipy.special` and Python itself.
The module before a name makes no difference: `np.sin`, `math.sin`, `xp.sin` and `sin` are the same.

{functions}

As in Python, {rounding} of `math`, and `round`, give Python integers.
Those of NumPy keep the type.

The constants are {constants}.
They need their module, as in `np.pi`, or an import.
Numbers have `x.real`, `x.imag`, `x.conjugate()`, `x.astype(dtype)`,
`x.item()` and `x.dtype`.

## Grammar

`grammar/python.lark` holds the grammar. Indentation, line joining, comments and numbers follow
Python.

{grammar}

## What the subset lacks

The error for each of these constructs shows its place and says what to write instead. The only
strings are docstrings, annotations and names of dtypes.

| construct | instead |
|---|---|
{refusals}

The error for these common names of Python and NumPy says what to write. It mentions `python=True`
only where that works, so not in stencils, reductions and texts:

| name | instead |
|---|---|
{names}
"""


def page() -> str:
    """The whole page."""
    operators = {*functions.OPERATORS, *functions.PREFIXES}
    named = _wrapped(sorted(functions.FUNCTIONS.keys() - operators))
    listed = f"{named}\n\nOperators as functions:\n{_wrapped(sorted(operators))}"
    rows = [f"| {_construct(what)} | {cure} |" for what, cure in syntax_errors.REFUSALS]
    return HEAD.format(
        dtypes="\n" + textwrap.fill(", ".join(BY_NAME), 99),
        functions=listed,
        rounding=", ".join(f"`{name}`" for name in ("floor", "ceil", "trunc")),
        constants=", ".join(f"`{name}`" for name in functions.CONSTANTS),
        grammar=_grammar(),
        refusals="\n".join(rows),
        names="\n".join(
            f"| {', '.join(f'`{name}`' for name in group)} | {cure} |" for cure, group in _habits().items()
        ),
    )


def _habits() -> dict[str, list[str]]:
    """Names by what to write instead."""
    found: dict[str, list[str]] = {}
    for name, cure in HABITS.items():
        found.setdefault(cure, []).append(name)
    return found


def _construct(what: str) -> str:
    return what.removesuffix(" is").replace("|", "\\|")


def _wrapped(names: list[str]) -> str:
    lines, line = [], ""
    for name in names:
        shown = f"`{name}`"
        if len(line) + len(shown) > 99:
            lines.append(line.rstrip())
            line = ""
        line += f"{shown} "
    return "\n".join([*lines, line.rstrip()])


def _grammar() -> str:
    """The sections of the grammar, aliases and tree-shaping marks left out."""
    text = (ROOT / "grammar" / "python.lark").read_text(encoding="utf-8")
    parts = re.split(r"^// --- (.*?) -+\n", text, flags=re.MULTILINE)[1:]
    sections = []
    for title, body in zip(parts[::2], parts[1::2], strict=True):
        rules = re.sub(r" +-> \w+$", "", body.strip("\n"), flags=re.MULTILINE)
        rules = re.sub(r"^\?", "", rules, flags=re.MULTILINE).replace("\n\n%declare", "\n%declare")
        rules = "\n".join(line for line in rules.splitlines() if not line.startswith("%declare"))
        sections.append(f"**{title.capitalize()}**\n\n```\n{rules.strip()}\n```")
    return "\n\n".join(sections)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
