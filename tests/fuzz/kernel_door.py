"""Kernel strings: what compiles gives the interpreter's bits, before and after the passes; all else is an error."""

from __future__ import annotations

import re
from math import prod
from random import Random
from typing import Any

import numpy as np

import fusec
from tests.fuzz import combining
from tests.fuzz.c_texts import KernelText, Param, kernel_text
from tests.fuzz.findings import accepted, attempt
from tests.fuzz.interpreting import Values, compare, interpreted, ways
from tests.fuzz.mutations import mutated
from tests.support.random_arguments import broadcast, laid_out, numbers

SIZES = ((1,), (3,), (7,), (15,), (16,), (17,), (31,), (33,), (64,), (67,), (130,))
SHAPES = ((), (0,), (3, 5), (1, 7), (5, 1), (4, 16), (2, 3, 5), (2, 0), (17, 33))
LARGE = ((70_001,), (300, 301))
OTHERS = ((0.01, combining.check_scan), (0.06, combining.check_reduction), (0.1, combining.check_hostile))  # summed up
UNSAFE = re.compile(r"\b(for|while|do|raw)\b|\[")
COMPILED, SHOWN = 0.3, 0.1  # shares of programs


class Given:
    """Arguments of one call, always the same for a seed. shared: an output in the memory of x0, or ""."""

    def __init__(self, text: KernelText, random: Random) -> None:
        large = random.random() < 0.01 and not any(param.role == "bins" for param in text.params)  # one by one
        self.shape = random.choice(LARGE if large else SIZES if random.random() < 0.6 else SHAPES)
        self.seed, self.params = random.getrandbits(32), text.params
        self.plain, self.allocates = random.random() < 0.5, random.random() < 0.5
        self.by_value = random.random() < 0.2
        first = {param.role: param for param in reversed(text.params)}
        alike = first["in"].dtype == first["out"].dtype
        self.shared = first["out"].name if alike and len(self.shape) == 1 and random.random() < 0.2 else ""
        self.shift = random.choice((0, 1, 5))

    def fresh(self) -> dict[str, Any]:
        """Arrays and numbers by parameter; None for an output that the call makes."""
        rng = np.random.default_rng(self.seed)
        made = {param.name: self._value(param, rng) for param in self.params}
        if self.allocates and not any(param.role in ("raw out", "bins") for param in self.params):
            full = next(param for param in self.params if param.role == "in")
            if np.shape(made[full.name]) == self.shape:
                made |= {param.name: None for param in self.params if param.role == "out"}
        if self.shared and made[self.shared] is not None:
            memory = np.resize(made["x0"], self.shape[0] + self.shift)
            made |= {"x0": memory[self.shift :], self.shared: memory[: self.shape[0]]}
        return made

    def split(self, by_value: frozenset[str]) -> tuple[Values, Values]:
        """Arrays, those that the call makes too, and numbers; nothing shares memory."""
        values = self.fresh()
        if self.shared and values[self.shared] is not None:
            values[self.shared] = values[self.shared].copy()
        for param in self.params:
            if values[param.name] is None:
                values[param.name] = np.zeros(self.shape, param.dtype.numpy)
        scalars = {name: values.pop(name) for name in by_value}
        return values, scalars

    def _value(self, param: Param, rng: np.random.Generator) -> Any:
        match param.role:
            case "in":
                last = param.name == [each.name for each in self.params if each.role == "in"][-1]
                if self.by_value and last and param.name != "x0" and len(param.declared) > 1:
                    return number(param, rng)
                if param.name != "x0" and not self.plain:  # x0 gives the shape
                    return broadcast(rng, param.dtype, self.shape)
            case "raw in":
                return laid_out(rng, param.dtype, ((4,), (17,), (2, 3), (5, 1, 2))[rng.integers(4)])
            case "number":
                return number(param, rng)
            case "bins":
                return numbers(rng, param.dtype, (4,))
            case "raw out":
                return numbers(rng, param.dtype, (max(1, prod(self.shape)),))
        return numbers(rng, param.dtype, self.shape) if self.plain else laid_out(rng, param.dtype, self.shape)


def number(param: Param, rng: np.random.Generator) -> object:
    """A Python number that the parameter holds exactly."""
    found = numbers(rng, param.dtype, (1,))[0]
    kind = param.dtype.kind
    return complex(found) if kind == "complex" else float(found) if kind == "float" else found.item()


def is_given(value: object) -> bool:
    """Whether a value is passed to a call."""
    return value is not None


def check(seed: int) -> None:
    """One program. Raises FindingError."""
    random = Random(f"kernel {seed}")
    form = random.random()
    for share, other in OTHERS:
        if form < share:
            other(random)
            return
    text = kernel_text(random)
    if form < 0.5:
        check_hostile(mutated(text.texts, random), text, random)
    else:
        check_text(text, random)


def check_text(text: KernelText, random: Random) -> None:
    """A valid text: every way to run it gives the same bits."""
    shown = repr(text.texts)
    kernel = accepted(lambda: fusec.ElementwiseKernel(**text.texts), shown)
    given = Given(text, random)
    check_runs(kernel, text, given, random, shown)


def check_runs(kernel: fusec.ElementwiseKernel, text: KernelText, given: Given, random: Random, shown: str) -> None:
    """A kernel gives the same bits in the interpreter, before and after all passes, and on the CPU."""
    values = given.fresh()
    by_value = frozenset(name for name, value in values.items() if isinstance(value, (bool, int, float, complex)))
    types = {param.name: param.dtype for param in text.params}
    ndims = {param.name: np.ndim(values[param.name]) for param in text.params if str(param).startswith("raw")}
    programs = ways(kernel.definition, types, {"": len(given.shape), **ndims}, by_value, kernel.fp)
    wanted = interpreted(programs, lambda: given.split(by_value), given.shape, shown)
    if given.shared:
        del wanted["x0"]
    if random.random() < COMPILED:
        for call in range(random.choice((1, 1, 1, 4))):
            compare(wanted, accepted(lambda: called(kernel, given), shown), f"the CPU differs in call {call}", shown)
    if random.random() < SHOWN:
        letters = {param.declared: param.dtype.name for param in text.params if len(param.declared) == 1}
        for target in ("cuda", "metal"):
            attempt(lambda target=target: kernel.source(target, letters, scalars=tuple(by_value)), shown)


def called(kernel: fusec.ElementwiseKernel, given: Given) -> dict[str, Any]:
    """What a call leaves in memory."""
    values = given.fresh()
    allocated = [name for name, value in values.items() if value is None]
    results = kernel(*filter(is_given, values.values()))
    results = results if isinstance(results, tuple) else (results,)
    outputs = [param.name for param in given.params if param.role in ("out", "raw out", "bins")]
    if allocated:
        values |= dict(zip(outputs, results, strict=True))
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def check_hostile(texts: dict[str, object], text: KernelText, random: Random) -> None:
    """A text that need not be valid: an error, or a kernel whose programs can be made and shown.

    What has no loop and no index that could go astray is also run.
    """
    shown = repr(texts)
    kernel = attempt(lambda: fusec.ElementwiseKernel(**texts), shown)  # type: ignore[arg-type]
    if isinstance(kernel, fusec.FusecError):
        return
    types = {param.declared: param.dtype.name for param in text.params if len(param.declared) == 1}
    found = attempt(lambda: kernel.source(random.choice(("ir", "cuda", "metal", "llvm")), types), shown)
    same = all(texts[side] == text.texts[side] for side in ("in_params", "out_params"))
    if same and not isinstance(found, fusec.FusecError) and not UNSAFE.search(shown):
        given = Given(text, random)
        if not isinstance(attempt(lambda: kernel(*filter(is_given, given.fresh().values())), shown), fusec.FusecError):
            check_runs(kernel, text, given, random, shown)
