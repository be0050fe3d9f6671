"""Fit computes integers in fewer bits, and every result stays what it was."""

from __future__ import annotations

import numpy as np
import pytest

import fusec
from fusec import passes
from fusec.base.dtypes import BY_NAME
from fusec.compiler import pipeline
from fusec.ir.expr import Apply
from fusec.ir.loops import Program
from fusec.ir.verify import verify
from fusec.ir.walk import expressions, operands, statements
from fusec.passes.narrow_to_int16 import narrow_to_int16

WIDE = ("int32", "int64", "uint32", "uint64")
TEXTS = (
    "({0}(x) - y) * 7 - {0}(y)",
    "abs({0}(x) * 3 - {0}(y) * 5)",
    "np.clip({0}(x) - {0}(y), 0, 255)",
    "np.maximum({0}(x) + y, 3) // 3 - np.minimum({0}(y), 9)",
    "({0}(x) * y) >> 2",
    "({0}(x) + y << 3) & 1023",
    "({0}(x) ^ ({0}(y) - 300)) % 17",
    "({0}(x) if {0}(x) - y > 40 else {0}(y) * 200) + 1",
    "{0}(x) * {0}(x) * {0}(y) - {0}(y) * 70000",
    "-({0}(x) * {0}(x)) - {0}(x) * 300",
)


@pytest.mark.parametrize("source", ["uint8", "int8", "int16"])
def test_all_pairs_of_values_give_what_numpy_gives(source: str) -> None:
    info = np.iinfo(source)
    step = 1 if info.bits == 8 else 509
    values = np.arange(info.min, info.max + 1, step).astype(source)
    x, y = (each.ravel() for each in np.meshgrid(values, values))
    for kind in WIDE if source == "uint8" else WIDE[:2]:
        body = "\n".join(f"    r{at} = {text.format('np.' + kind)}" for at, text in enumerate(TEXTS))
        names = ", ".join(f"r{at}" for at in range(len(TEXTS)))
        f = fusec.elementwise(f"def f(x, y):\n{body}\n    return {names}\n", names={"np": np})
        for text, found in zip(TEXTS, f(x, y), strict=True):
            plain = text.replace(
                "({0}(x) if {0}(x) - y > 40 else {0}(y) * 200)", "np.where({0}(x) - y > 40, {0}(x), {0}(y) * 200)"
            )
            wanted = eval(plain.format("np." + kind), {"np": np, "x": x, "y": y})
            np.testing.assert_array_equal(found, wanted, err_msg=f"{text} {kind}", strict=True)


def test_sums_of_pixels_need_sixteen_bits() -> None:
    f = fusec.elementwise(
        "def f(x, y):\n    d = np.int32(x) - y\n    return np.uint8(np.clip(abs(d), 0, 255))", names={"np": np}
    )
    definition = f._variant(("array", "array")).definition
    types = dict.fromkeys(("x", "y", "out"), BY_NAME["uint8"])
    before = pipeline.lower(definition, types, {"": 1}, frozenset())
    after = pipeline.lower(definition, types, {"": 1}, frozenset(), passes.Facts(target="cpu"))
    verify(after)
    assert max(bits_of(before)) == 32
    assert max(bits_of(after)) == 16
    assert narrow_to_int16(after) is after


def bits_of(program: Program) -> set[int]:
    """Widths of the types that the program computes with."""
    roots = [root for stmt in statements(program.body) for root in operands(stmt)]
    return {each.type.bits for each in expressions(roots) if isinstance(each, Apply)}
