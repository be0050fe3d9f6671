"""Expressions: what NumPy computes of them, the interpreter's bits where functions are fusec's own, or an error."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

import fusec
from fusec.base.dtypes import BY_NAME, from_numpy
from fusec.fusion.expression_kernels import ElementPart, ExpressionKernel
from tests.fuzz.findings import FindingError, accepted, attempt
from tests.fuzz.interpreting import compare, interpreted, ways
from tests.fuzz.mutations import WORDS, mutated_text
from tests.support.expression_texts import arguments, by_numpy, expression, values

REAL = ("f4", "f8", "f4", "f8", "f2", "i4", "u1", "i8", "?")
DEAR = (
    "exp",
    "log",
    "sin",
    "cos",
    "tanh",
    "erf",
    "log1p",
    "arctan2",
    "pow",
    "cbrt",
    "sinh",
    "expm1",
    "hypot",
    "tgamma",
    "arccos",
)
TOKENS = (*WORDS, *"abckns", *"abckns", *"+-*/()<>%~", "where(", "sum(", "sin(", ", axis=0)", ".real", "1.5", "2")


def check(seed: int) -> None:
    """One program. Raises FindingError."""
    random = Random(f"evaluate {seed}")
    form = random.random()
    if form < 0.55:
        check_hostile(random)
    elif form < 0.95:
        check_text(random)
    else:
        check_functions(random)


def check_text(random: Random) -> None:
    """A text means what NumPy computes: the same dtype and shape, and the same values where NumPy's are exact."""
    names = arguments(random)
    text = expression(random, random.choice((1, 2, 2, 3, 4)), list("abc"))
    shown = f"{text}  with  {described(names)}"
    wanted = by_numpy(text, names)
    if wanted is None:
        return
    problem = fusec.validate(text, names, {})
    if problem is not None:
        if "complex numbers have no order" not in str(problem):  # NumPy compares their parts
            accepted(lambda: raised(problem), shown)
        return
    found: Any = np.asarray(accepted(lambda: fusec.evaluate(text, names, {}), shown))
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        detail = f"{found.dtype} {found.shape}, not {wanted.dtype} {wanted.shape}"
        raise FindingError("dtype", detail, shown)
    if "1j" in text or any(np.iscomplexobj(each) for each in names.values()):
        return  # products and quotients are NumPy's but for rounding
    if not np.array_equal(found, wanted, equal_nan=wanted.dtype.kind == "f"):
        raise FindingError("value", f"{found!r}, not {wanted!r}", shown)


def raised(error: Exception) -> None:
    raise error


def described(names: dict[str, Any]) -> str:
    """The arguments, for whom it concerns."""
    return ", ".join(f"{name}={value!r}" for name, value in names.items())


def check_functions(random: Random) -> None:
    """A text with elementary functions gives the interpreter's bits."""
    names = {name: values(random, random.choice(REAL), random.choice(((40,), (5, 9), (1, 9)))) for name in "ab"}
    inner = expression(random, random.choice((0, 1)), list("ab")).replace("axis=1", "axis=0")
    name = random.choice(DEAR)
    call = f"{name}({inner}, b)" if name in ("arctan2", "pow", "hypot") else f"{name}({inner})"
    text = (
        random.choice((f"{call} + a", f"b * {call}", call)).replace("1j", "2").replace("k", "2.5").replace(" n)", " 3)")
    )
    text = text.replace(" s)", " 1)").replace("(s ", "(1 ").replace("(n ", "(3 ")
    shown = f"{text}  with  {described(names)}"
    parsed = attempt(lambda: ExpressionKernel(text), shown)
    if isinstance(parsed, fusec.FusecError) or not isinstance(parsed.only, ElementPart):
        return
    inputs = tuple(names[each] for each in parsed.names)
    found = attempt(lambda: fusec.evaluate(text, names, {}), shown)
    if isinstance(found, fusec.FusecError):
        return
    dtype, variant = parsed.only.result(inputs), parsed.only.variant(inputs)
    types = variant.signature.bind([*(from_numpy(each.dtype) for each in inputs), None])
    out = variant.out_params[0].name
    shape = np.broadcast_shapes(*(each.shape for each in inputs))

    def fresh() -> tuple[dict[str, Any], dict[str, Any]]:
        arrays = {param.name: each for param, each in zip(variant.in_params, inputs, strict=True)}
        return {**arrays, out: np.zeros(shape, dtype.numpy)}, {}

    wanted = interpreted(ways(variant.definition, types, {"": len(shape)}, frozenset()), fresh, shape, shown)
    compare({out: wanted[out]}, {out: np.asarray(found)}, "the CPU differs", shown)
    assert dtype.name in BY_NAME


def check_hostile(random: Random) -> None:
    """A text that need not be valid: a value, or an error; never one that takes its time."""
    names = arguments(random)
    if random.random() < 0.3:
        text = " ".join(random.choice(TOKENS) for _ in range(random.randint(1, 14)))
    else:
        text = mutated_text(expression(random, random.choice((1, 2, 3)), list("abc")), random)
    shown = f"{text[:3000]}  with  {described(names)}"
    found = fusec.validate(text, names, {})
    if found is not None:
        attempt(lambda: raised(found), shown)
    elif random.random() < 0.2:
        attempt(lambda: fusec.evaluate(text, names, {}), shown)
