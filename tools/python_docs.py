"""Writes docs/python.md, the description of the Python subset: its grammar, functions and refusals as they are.

``python tools/python_docs.py`` after a change of grammar/python.lark or of the tables it shows; a test compares.
"""

import re
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

A decorated function says what happens to *one* element: scalars come in, one scalar or a tuple goes out. Its
source is read, parsed by the grammar below and compiled for the dtypes of each call; it is never run. Calls take
arrays of [any library](arguments.md) that broadcast, lists, and numbers, by position or name; `out=` takes the array
for the result, or a tuple of arrays. A tuple may come from another function, as in `return divmod(x, y)`. Without any
array the result is a NumPy scalar.

`fusec.elementwise(lambda x: ...)` takes a lambda, and `fusec.elementwise("def f(x): ...")` the text itself, where there
is no file to read it from; before the function may stand others that it calls, and `names=` says what its free names
stand for. Options: `name=`, shown in messages and used as entry point, and `fp=`. A function has `source(target)`,
`explain(*args)`, and pickles by its source.

## Types

- Types are inferred at every call. An annotation fixes one: `x: float32`, `x: np.float32` or `x: "float32"`,
  likewise for the result, `-> float32`, and for a variable, `t: float32 = x / 3`, which converts.
- Arithmetic has NumPy 2's result types: `/` divides truly, `//` and `%` round down, `int8 + int16` is int16.
  Python's own numbers adapt to the dtype that they meet (NEP 50), and so do Python numbers among the arguments of
  a call. An integer that the dtype cannot hold is an error.
- `float()`, `int()`, `bool()` and `complex()` make Python numbers, whose integers have 64 bits here. Functions of
  Python numbers alone give Python numbers, np.sqrt(2) too.
- A variable may take another type by assignment, `x = x / 255`, but not on one way only: where two ways meet,
  after an `if` and from round to round of a loop, it has one dtype, and a Python number there becomes a value of
  that dtype. The same holds for what a function returns. `a if test else b`, `and` and `or` have the type that
  np.where gives them.
- float16, bfloat16 and the 8-bit floats compute in float32 and round once: at the store, or where they are
  converted.
- Integers wrap; division of an integer by zero gives 0; a float too large for an integer saturates, nan gives 0.
  The order of complex numbers, which NumPy has, is refused.
- `for i in range(start, stop, step)` counts in int64. A uint64 from 2**63 on is none of its bounds, it wraps; and with
  steps other than 1 and -1 the counter passes `stop` by less than a step, which must not take it beyond int64: where
  the numbers are known when a kernel is compiled that is an error, otherwise the loop goes on from the other end.
- A dtype is known when a kernel is compiled: `np.float32`, `np.dtype("f")`, `x.dtype`, also under a name. It converts
  when it is called, `x.dtype.type(1)`; `if x.dtype == np.float32:` compiles one of the two ways. NumPy's ufuncs take
  `dtype=`, by its rules: `np.add(x, y, dtype="float32")` converts operands to the same kind of numbers or a wider one.

dtypes: {dtypes}.

## Names

Names from outside are looked up when the function is decorated, those that are not there yet at the first call that
finds them, and are constants from then on: numbers, NumPy scalars, dtypes, functions, tuples and lists of them, and
arrays, which are copied. So are attributes of objects that end in one of these, `settings.scale` or
`table.shape[0]`. Plain Python functions and decorated ones may be called, by position and name; they are compiled into
the kernel, so they are of the same subset, and do not call themselves. Defaults are constants too: a call that leaves
one out runs a kernel compiled for it.

A function may stand inside another and use its variables, as they are at the call; it may be passed to functions, not
returned. One of a single `return` is written out where it is called, so that it may index the arrays of a stencil.

`fusec.vectorize` makes the same of a function by `numpy.vectorize`'s calls: lists are arrays, `otypes=` converts the
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

Tuples, and arrays and lists from outside, take any integer as an index; negative ones count from the end. An array
has `.shape`, `.size`, `.ndim`, `.dtype` and `len`, may have several axes, `a[i, j]` or `a[i][j]`, and may be passed to
functions. It is what it was when the function was decorated, whatever becomes of it later, and has up to 4096 elements;
a larger one is an argument of an [explicit kernel](#explicit-kernels). Items that an index chooses at run time have one
type, by the rule for variables. An index outside gives the nearest item; with `FUSEC_CHECK=bounds` it is an error with
line and element.

`for` walks over tuples and arrays, also by `enumerate`, `zip` and `reversed`, which take a `range` of known numbers
too. Up to 64 rounds are written out, so that each value is known in its round, as in `for k in (1, 2): x = x ** k`.

## Stencils

```python
@fusec.stencil(boundary="reflect")
def laplacian(a):
    return a[-1, 0] + a[1, 0] + a[0, -1] + a[0, 1] - 4 * a[0, 0]
```

An indexed parameter is an array whose neighbours the function looks at: `a[-1, 0]` is the one before along the first
axis, `a` and `a[0, 0]` are the element itself. Several arrays, all of the shape of the result, numbers, arrays that
broadcast and anything that an element-wise function may say go into the same kernel. There are as many offsets as
axes, or as many as `axes=` names.

`boundary=`, one for all axes or a tuple, says what lies outside. For a row `a b c d` it is

| boundary | to the left | to the right | |
|---|---|---|---|
| `"constant"` | k k k k | k k k k | k is `cval=`, 0 if not given; integers and bool hold it exactly, floats round it |
| `"nearest"` | a a a a | d d d d | |
| `"reflect"` | d c b a | d c b a | |
| `"mirror"` | d c b | c b a | |
| `"wrap"` | a b c d | a b c d | |
| `"skip"` | | | elements that lack a neighbour are left out: 0 in a new output, as they were in a given one |

as scipy.ndimage has them. Other names are `"edge"` (nearest), `"symmetric"` and `"grid-mirror"` (reflect),
`"grid-wrap"` (wrap) and `"grid-constant"` (constant). Results of small integers wrap, as NumPy's do. Weights that a
loop walks are a tuple, or an array from outside.

The function is compiled twice, for elements whose neighbours all exist and for those at the
border. Offsets that a loop over known numbers makes are known: `for k in range(-2, 3): total += a[k] * weights[k + 2]`.
Others, such as an argument, are looked up as at the border, and `"skip"` refuses them.
Offsets reach 2**31 either way; known ones beyond that are refused.

## Explicit kernels

`fusec.kernel` makes a loop over `fusec.grid(...)` a kernel that indexes its arrays itself; [kernels.md](kernels.md) has
it, with local arrays, atomic updates, blocks that share arrays and meet at barriers, random numbers, checks of bounds
and assertions, and `fusec.simulate`.

## Reductions

`fusec.reduction` makes a function that combines two totals a reduction of arrays, with functions that map elements and
finish totals; [reductions.md](reductions.md#reductions-in-python) has it. `a if test else b` may choose one of two
tuples of as many parts.

## Functions

By the names of NumPy, the Array API, `math`, `scipy.special` and Python itself, whichever module they are written
with: `np.sin`, `math.sin`, `xp.sin` and `sin` are one.

{functions}

As in Python, {rounding} of `math`, and `round`, give Python integers; those of NumPy leave the type as it is.
Constants:
{constants}. Of numbers: `x.real`, `x.imag`, `x.conjugate()`, `x.astype(dtype)`, `x.item()`, `x.dtype`.

## Grammar

The grammar is `grammar/python.lark`. Indentation, joined lines, comments and numbers are Python's.

{grammar}

## What Python has beyond this

Each is refused with its place and what to write instead; docstrings, annotations and names of dtypes are the only
strings.

| construct | instead |
|---|---|
{refusals}

Of other functions of Python and NumPy, some are used so often that the error says what to write:

| name | instead |
|---|---|
{names}
"""


def page() -> str:
    """The whole page."""
    operators = {*functions.OPERATORS, *functions.PREFIXES}
    named = _wrapped(sorted(functions.FUNCTIONS.keys() - operators))
    listed = f"{named}\n\nOperators as functions: {_wrapped(sorted(operators))}"
    rows = [f"| {_construct(what)} | {cure} |" for what, cure in syntax_errors.REFUSALS]
    return HEAD.format(
        dtypes=", ".join(BY_NAME),
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
        if len(line) + len(shown) > 110:
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
