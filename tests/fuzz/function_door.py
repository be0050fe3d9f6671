"""Python functions as texts: what compiles gives what Python computes, element by element; all else is an error."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np

import fusec
from tests.fuzz.findings import FindingError, accepted, attempt
from tests.fuzz.interpreting import compare
from tests.fuzz.mutations import mutated_text
from tests.support import python_functions, reduction_texts

COUNTS = (1, 7, 16, 17, 24, 33)
COMPILED, SHOWN = 0.3, 0.1  # shares of programs
BOUNDARIES = ("constant", "nearest", "reflect", "mirror", "wrap", "skip")
CONSTANT = 3  # outside of the arrays of a stencil
SHAPES = {1: ((1,), (2,), (9,), (40,)), 2: ((1, 1), (2, 3), (4, 9), (3, 20)), 3: ((2, 3, 4), (1, 5, 2))}
REDUCED = ((7,), (3, 5), (2, 40), (40, 2))


def check(seed: int) -> None:
    """One program. Raises FindingError."""
    random = Random(f"function {seed}")
    if random.random() < 0.55:
        check_hostile(random)
    else:
        random.choice((check_elementwise, check_elementwise, check_stencil, check_kernel, check_reduction))(random)


def same(found: Any, wanted: Sequence[np.ndarray], what: str, shown: str) -> None:
    """Raise FindingError unless results are those wanted."""
    found = found if isinstance(found, tuple) else (found,)
    compare(*({str(at): np.asarray(each) for at, each in enumerate(side)} for side in (wanted, found)), what, shown)


def ways(random: Random, compiled: float = COMPILED) -> tuple[tuple[str, Callable[[Any], Any]], ...]:
    """How the program runs."""
    simulated = ("the interpreter", fusec.simulate)
    return (simulated, ("the CPU", lambda f: f)) if random.random() < compiled else (simulated,)


def show(kernel: Any, types: dict[str, str], random: Random, shown: str) -> None:
    """Print the texts of some programs."""
    if random.random() < SHOWN:
        for target in ("cuda", "metal"):
            attempt(lambda target=target: kernel.source(target, types), shown)


def arrays_of(writer: python_functions.Writer, count: int, random: Random) -> list[np.ndarray]:
    """An array for each parameter, some of them not contiguous."""
    made = []
    for dtype in writer.params.values():
        values = python_functions.values(dtype, max(2 * count, 16), random.getrandbits(30))
        made.append(random.choice((values[:count], values[:count], values[: 2 * count : 2], values[count - 1 :: -1])))
    return [each[:count] for each in made]


def check_elementwise(random: Random) -> None:
    """A function of numbers is what Python makes of every element."""
    writer = python_functions.Writer(random.getrandbits(40), random.choice((1, 1, 2, 3, 5)))
    text = writer.source()
    f = accepted(lambda: fusec.elementwise(text, names=names_of(writer)), text)
    arrays = arrays_of(writer, random.choice(COUNTS), random)
    wanted: list[np.ndarray] = []
    for what, way in ways(random):
        found = accepted(lambda way=way: way(f)(*arrays), text)
        found = found if isinstance(found, tuple) else (found,)
        wanted = wanted or python_functions.in_python(text, arrays, [each.dtype for each in found], writer.tables)
        same(found, wanted, what, text)
    show(f, writer.params, random, text)


def check_kernel(random: Random) -> None:
    """A loop over a grid that calls a function is the function."""
    writer = python_functions.Writer(random.getrandbits(40), random.choice((1, 1, 2, 3, 5)))
    arrays = arrays_of(writer, random.choice(COUNTS), random)
    outputs = [f"result{at}" for at in range(len(writer.results))]
    text = writer.source()
    whole = text + python_functions.kernel_text(list(writer.params), outputs)
    kernel = accepted(
        lambda: fusec.kernel(whole, names=names_of(writer), bounds=random.choice(("check", "trust"))), whole
    )
    wanted = python_functions.in_python(text, arrays, writer.results, writer.tables)
    for each in wanted:
        each[np.arange(len(each)) % 5 == 3] = 0
    for what, way in ways(random):
        found = [np.zeros_like(each) for each in wanted]
        accepted(lambda way=way, found=found: way(kernel)(*arrays, *found), whole)
        same(tuple(found), wanted, what, whole)


def names_of(writer: python_functions.Writer) -> dict[str, Any]:
    """What the names of a text stand for."""
    return {"np": np, "fusec": fusec, **writer.tables}


def tuple_of(found: Any) -> tuple[Any, ...]:
    """One result or several as a tuple."""
    return found if isinstance(found, tuple) else (found,)


class Around:
    """An array as a stencil's function sees it from one element. Raises KeyError for a neighbour that "skip" lacks."""

    def __init__(self, array: np.ndarray, boundary: str, at: tuple[int, ...]) -> None:
        self.array, self.boundary, self.at = array, boundary, at

    def __getitem__(self, offsets: Any) -> Any:
        offsets = offsets if isinstance(offsets, tuple) else (offsets,)
        place = []
        for extent, here, offset in zip(self.array.shape, self.at, offsets, strict=True):
            index = here + offset
            if not 0 <= index < extent:
                if self.boundary == "skip":
                    raise KeyError
                if self.boundary == "constant":
                    return self.array.dtype.type(CONSTANT)
                index = inside(index, extent, self.boundary)
            place.append(index)
        return self.array[tuple(place)]


def inside(index: int, extent: int, boundary: str) -> int:
    """The place that stands for one outside."""
    match boundary:
        case "nearest":
            return min(max(index, 0), extent - 1)
        case "wrap":
            return index % extent
        case "reflect":
            index %= 2 * extent
            return min(index, 2 * extent - 1 - index)
    if extent == 1:
        return 0
    index %= 2 * extent - 2
    return min(index, 2 * extent - 2 - index)


def stencil_text(random: Random, ndim: int) -> tuple[str, dict[str, str], dict[str, Any]]:
    """A function of neighbours, and the dtype of each array."""
    writer = python_functions.Writer(random.getrandbits(40), random.choice((1, 1, 2, 3, 5)))
    arrays = {name: random.choice(python_functions.DTYPES[1:]) for name in ("a", "b")[: random.choice((1, 1, 2))]}
    writer.params, taps = {}, []
    for at in range(random.randint(1, 4)):
        name = random.choice(list(arrays))
        writer.params[f"x{at}"] = arrays[name]
        offsets = ", ".join(str(random.choice((-1, 0, 1, 2, -3))) for _ in range(ndim))
        taps.append(f"    x{at} = {name}[{offsets}]")
    used = {line.split(" = ")[1][0] for line in taps} | {"a"}
    if not any(" = a[" in line for line in taps):
        taps.append(f"    y = a[{', '.join(['-1'] * ndim)}]")
        writer.params["y"] = arrays["a"]
    if not any(int(part) for line in taps for part in line.split("[")[1][:-1].split(",")):
        taps[0] = f"    x0 = {taps[0].split(' = ')[1][0]}[{', '.join(['1'] * ndim)}]"
    writer.variables = dict(writer.params)
    body = writer.source().split("\n")[1:]
    arrays = {name: dtype for name, dtype in arrays.items() if name in used}
    return "\n".join([f"def f({', '.join(arrays)}):", *taps, *body]), arrays, names_of(writer)


def check_stencil(random: Random) -> None:
    """A function of neighbours is what Python makes of every element and those around it."""
    ndim = random.choice((1, 1, 2, 2, 3))
    text, types, names = stencil_text(random, ndim)
    boundary, shape = random.choice(BOUNDARIES), random.choice(SHAPES[ndim])
    shown = f"{text}\nboundary={boundary!r}, {types}, {shape}"
    f = accepted(lambda: fusec.stencil(text, names=names, boundary=boundary, cval=CONSTANT), shown)
    size = int(np.prod(shape))
    arrays = [
        python_functions.values(dtype, max(size, 16), random.getrandbits(30))[:size].reshape(shape)
        for dtype in types.values()
    ]
    if random.random() < 0.3:
        arrays = [np.asfortranarray(each) for each in arrays]
    wanted: list[np.ndarray] = []
    for what, way in ways(random):
        found = tuple_of(accepted(lambda way=way: way(f)(*arrays), shown))
        wanted = wanted or around(text, arrays, boundary, [each.dtype for each in found], names)
        same(found, wanted, what, shown)
    show(f, types, random, shown)


def around(
    text: str, arrays: list[np.ndarray], boundary: str, dtypes: list[Any], names: dict[str, Any]
) -> list[np.ndarray]:
    """The results that Python computes of the function, 0 where "skip" leaves elements out."""
    shape = arrays[0].shape
    wanted = [np.zeros(shape, dtype) for dtype in dtypes]
    exec(text, names)
    with python_functions.quietly():
        for at in itertools.product(*map(range, shape)):
            try:
                found = tuple_of(names["f"](*(Around(each, boundary, at) for each in arrays)))
            except KeyError:
                continue
            for result, value in zip(wanted, found, strict=True):
                result[at] = value
    return wanted


def check_reduction(random: Random) -> None:
    """Totals of integers are those of functools.reduce."""
    mapping, combining = reduction_texts.functions(random)
    shown = f"map={mapping!r}, combine={combining!r}"
    shape, dtype = random.choice(REDUCED), random.choice(python_functions.INTEGERS)
    axis = random.choice((0, -1))
    size = int(np.prod(shape))
    x, y = (np.frombuffer(random.randbytes(8 * size), dtype)[:size].reshape(shape) for _ in "xy")
    f = accepted(lambda: fusec.reduction(map=mapping, combine=combining), shown)
    try:
        totals = reduction_texts.in_python(mapping, combining, (x, y), axis)
    except OverflowError:
        if not isinstance(attempt(lambda: f(x, y, axis=axis), shown), OverflowError):
            raise FindingError("accepted", "a number that its dtype cannot hold", f"{shown}, {dtype}") from None
        return
    for what, way in ways(random, compiled=0.1):
        found = tuple_of(accepted(lambda way=way: way(f)(x, y, axis=axis), shown))
        wanted = [
            np.array(values, np.result_type(*values)).reshape(part.shape)
            for part, values in zip(found, zip(*totals, strict=True), strict=True)
        ]
        same(found, wanted, what, f"{shown}, {dtype} {shape}, axis={axis}")


def check_hostile(random: Random) -> None:
    """A text that need not be valid: an error, or a function whose texts can be made."""
    form = random.choice(("elementwise", "elementwise", "stencil", "kernel", "reduction"))
    writer = python_functions.Writer(random.getrandbits(40), random.choice((1, 1, 2, 3, 5)))
    types: dict[str, str] = dict(writer.params)
    text, names = writer.source(), names_of(writer)
    if form == "stencil":
        text, types, names = stencil_text(random, 2)
    elif form == "kernel":
        text += python_functions.kernel_text(list(writer.params), [f"out{at}" for at in range(len(writer.results))])
    elif form == "reduction":
        mapping, combining = reduction_texts.functions(random)
        which = random.choice(("map", "combine", "finish"))
        texts = {"map": mapping, "combine": combining, "finish": "lambda total: total[0] * 2"}
        texts[which] = mutated_text(texts[which], random)
        found = attempt(lambda: fusec.reduction(**texts), repr(texts))
        if not isinstance(found, fusec.FusecError):
            attempt(lambda: found.source("cuda", {"x": "int32", "y": "int32"}), repr(texts))
        return
    text = mutated_text(text, random)
    door = getattr(fusec, form)
    found = attempt(lambda: door(text, names=names), text)
    if isinstance(found, fusec.FusecError) or form == "kernel":
        return
    attempt(lambda: found.source(random.choice(("ir", "cuda", "metal", "llvm")), types), text)
