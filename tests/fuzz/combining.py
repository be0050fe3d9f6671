"""Strings of reductions and scans: their totals are those of NumPy's ufuncs over what the map makes."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import numpy as np

import fusec
from fusec.base.dtypes import BY_NAME, DType
from tests.fuzz.c_expressions import Expressions, Name, Scope
from tests.fuzz.c_types import kind_of
from tests.fuzz.findings import accepted, attempt
from tests.fuzz.interpreting import compare
from tests.fuzz.mutations import mutated
from tests.support.random_arguments import broadcast, laid_out, numbers

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
ELEMENTS = (*INTEGERS, "float32", "float64", "float16", "bool")
COMBINED = {
    "a + b": (np.add, 0), "a * b": (np.multiply, 1), "a | b": (np.bitwise_or, 0), "a ^ b": (np.bitwise_xor, 0),
    "b & a": (np.bitwise_and, -1), "min(a, b)": (np.minimum, None), "max(a, b)": (np.maximum, None),
}  # fmt: skip
SHAPES = ((1,), (7,), (33,), (130,), (3, 5), (2, 70), (70, 2), (40, 33), (2, 3, 4), (5, 1, 6), (9000,))
COMPILED = 0.25  # share of reductions; scans have no other way to run


class Combining(NamedTuple):
    """A random reduction or scan. total: the dtype of what is combined; values: what goes in."""

    texts: dict[str, Any]
    total: DType
    result: DType
    values: list[np.ndarray]
    shape: tuple[int, ...]


def draw(random: Random) -> Combining:
    """Texts and values."""
    writer = Expressions(random, 25, 0.0, complex_too=False)
    total, result = BY_NAME[random.choice(INTEGERS)], BY_NAME[random.choice((*INTEGERS, "float64"))]
    dtypes = [BY_NAME[random.choice(ELEMENTS)] for _ in range(random.choice((1, 1, 2)))]
    names = [Name(f"x{at}", kind_of(dtype.kind), dtype.name) for at, dtype in enumerate(dtypes)]
    expression = random.choice(tuple(COMBINED))
    post = random.choice(("a", writer.value(kind_of(result.kind), Scope([Name("a", "int", total.name)]), 2)))
    identity = COMBINED[expression][1]
    if identity == -1 and total.kind == "unsigned":
        identity = 2**total.bits - 1
    texts = {
        "in_params": ", ".join(f"{dtype.name} x{at}" for at, dtype in enumerate(dtypes)),
        "out_params": f"{result.name} y",
        "map_expr": writer.value("int", Scope(names), 3),
        "reduce_expr": expression,
        "post_map_expr": f"y = {post};",
        "identity": identity,
        "name": "combined",
        "reduce_type": total.name,
    }
    shape, rng = random.choice(SHAPES), np.random.default_rng(random.getrandbits(32))
    values = [laid_out(rng, dtypes[0], shape) if random.random() < 0.5 else numbers(rng, dtypes[0], shape)]
    values += [broadcast(rng, dtype, shape) for dtype in dtypes[1:]]
    return Combining(texts, total, result, values, shape)


def mapped(given: Combining) -> np.ndarray:
    """What is combined, by the interpreter of another sort of kernel."""
    texts = given.texts
    kernel = fusec.ElementwiseKernel(texts["in_params"], f"{given.total.name} m", f"m = {texts['map_expr']}")
    return fusec.simulate(kernel)(*given.values)


def finished(given: Combining, totals: np.ndarray) -> np.ndarray:
    """The results of totals, likewise."""
    texts = given.texts
    kernel = fusec.ElementwiseKernel(f"{given.total.name} a", texts["out_params"], texts["post_map_expr"])
    return fusec.simulate(kernel)(totals)


def check_reduction(random: Random) -> None:
    """A ReductionKernel. Raises FindingError."""
    given = draw(random)
    axis = random.choice((None, 0, -1, tuple(range(len(given.shape)))))
    keepdims, masks = random.random() < 0.3, random.random() < 0.2 and given.texts["identity"] is not None
    options: dict[str, Any] = {"axis": axis, "keepdims": keepdims}
    shown = f"ReductionKernel {given.texts} {options} {given.shape}"
    with np.errstate(all="ignore"):
        values = accepted(lambda: mapped(given), shown)
        if masks:
            options["where"] = np.random.default_rng(random.getrandbits(32)).random(given.shape) < 0.6
            values = np.where(options["where"], values, np.array(given.texts["identity"], values.dtype))
        combine = COMBINED[given.texts["reduce_expr"]][0]
        totals = combine.reduce(values, axis=axis, dtype=values.dtype, keepdims=keepdims)
        wanted = accepted(lambda: finished(given, np.asarray(totals)), shown)
    kernel = accepted(lambda: fusec.ReductionKernel(**given.texts), shown)
    ways = (("the interpreter", fusec.simulate(kernel)), ("the CPU", kernel))
    for what, way in ways if random.random() < COMPILED else ways[:1]:
        found = accepted(lambda way=way: way(*given.values, **options), shown)
        compare({"y": np.asarray(wanted)}, {"y": np.asarray(found)}, f"{what} differs", shown)


def check_scan(random: Random) -> None:
    """A ScanKernel. Raises FindingError."""
    given = draw(random)
    axis, reverse = random.choice((0, -1)), random.random() < 0.3
    inclusive = given.texts["identity"] is None or random.random() < 0.6
    texts = dict(given.texts)
    texts["scan_expr"] = texts.pop("reduce_expr")
    shown = f"ScanKernel {texts} {inclusive=} {axis=} {reverse=} {given.shape}"
    with np.errstate(all="ignore"):
        values = np.moveaxis(accepted(lambda: mapped(given), shown), axis, -1)
        values = values[..., ::-1] if reverse else values
        totals = COMBINED[texts["scan_expr"]][0].accumulate(values, axis=-1, dtype=values.dtype)
        if not inclusive:
            first = np.full_like(totals[..., :1], texts["identity"])
            totals = np.concatenate([first, totals[..., :-1]], axis=-1)
        totals = np.moveaxis(totals[..., ::-1] if reverse else totals, -1, axis)
        wanted = accepted(lambda: finished(given, totals), shown)
    kernel = accepted(lambda: fusec.ScanKernel(**texts, inclusive=inclusive), shown)
    found = accepted(lambda: kernel(*given.values, axis=axis, reverse=reverse), shown)
    compare({"y": np.asarray(wanted)}, {"y": np.asarray(found)}, "the CPU differs", shown)


def check_hostile(random: Random) -> None:
    """Texts of a reduction or a scan that need not be valid."""
    given = draw(random)
    texts = mutated(given.texts, random)
    makes, scan = fusec.ReductionKernel, random.random() < 0.4
    if scan:
        makes = fusec.ScanKernel
        texts["scan_expr"] = texts.pop("reduce_expr")
    shown = f"{makes.__name__} {texts}"
    kernel = attempt(lambda: makes(**texts), shown)
    if not isinstance(kernel, fusec.FusecError):
        attempt(lambda: kernel.source(random.choice(("cuda", "metal", "llvm"))), shown)
