"""The page docs/accuracy.md, made of the findings alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.accuracy import results
from tools.accuracy.functions import COMPLEX, ROWS

PEERS = ("numpy", "jax", "torch", "numba")
TITLES = {"cpu": "CPU", "cuda": "CUDA", "numpy": "NumPy", "jax": "JAX", "torch": "torch", "numba": "Numba"}
SCIPY = "NumPy, or SciPy where NumPy lacks the function"

INTRODUCTION = """\
# Accuracy

Made by `python -m tools.accuracy` from measurements in [accuracy.json](accuracy.json); not written by hand.

The error of a result is its distance from the exact value in *ulp*: units of the last place that a float next to the
exact value has. Correct rounding means at most 0.5 ulp. Below the least normal number the unit is that of subnormals,
and what overflows counts as the power of two after the greatest float. Where the exact value is nan the result must
be nan; one nan without the other would show as an infinite error.

- **float32**, one operand: by a kernel that steps through bit patterns and compares each result with the function's
  float64 value, whose own error is below 2^-28 of a float32's last place (see the float64 table). The worst argument,
  and some thousand chosen because they are hard, are judged with 40 digits (mpmath).
- **float32**, two operands: random pairs, a quarter of them any bits, the others where the function is hard.
- **float64**: random arguments, in ranges and in exponents, and hard ones: near the ends of ranges, about constants
  where methods change, and for sin, cos and tan the floats closest to multiples of pi / 2, up to 6381956970095103 *
  2^797. The exact values have 64 digits of C's long double where there is such a function, with 40 decimal digits for
  the worst, or 40 digits throughout.
- **float16**, **bfloat16**: all of them. They compute in float32 and round once, so that more than 0.5 ulp means that
  an error of float32 moved a result across the middle of two floats.

*all*: each of the dtype's numbers was tried. *1/n*: every n-th bit pattern. ≥ stands where fewer than all were tried:
the greatest error is at least this. Functions that IEEE 754 or C define exactly are not here: the tests compare them
with NumPy by bits.
"""

NOTES = """\
A peer's number is its greatest error among normal arguments with normal results; † marks one that errs more, or more
than four ulp more, at subnormal numbers (some flush them to zero) or at the ends of the range. A dash: it lacks the
function in that dtype.
"""


def write(source: Path) -> None:
    """Write the page beside its data."""
    source.with_suffix(".md").write_text(text(results.read(source)))


def text(data: dict[str, Any]) -> str:
    """The whole page."""
    parts = [INTRODUCTION, *_about(data["about"])]
    for dtype in ("float32", "float64", "float16", "bfloat16"):
        if dtype in data["errors"]:
            parts += ["", f"## {dtype}", "", *_table(dtype, data["errors"][dtype])]
    parts += ["", "## Exceptions", "", *_exceptions(data["errors"])]
    for dtype in ("complex64", "complex128"):
        if dtype in data["errors"]:
            parts += ["", f"## {dtype}", "", *_complex_table(data["errors"][dtype])]
    parts += _same_bits(data["same"], data["errors"].get("float32", {}))
    return "\n".join(parts) + "\n"


def _about(about: dict[str, Any]) -> Iterator[str]:
    yield "Measured on:"
    yield ""
    for name in ("cpu", "cuda"):
        if name in about:
            yield f"- {TITLES[name]}: {about[name]}"
    if versions := about.get("peers"):
        listed = ", ".join(f"{name} {version}" for name, version in versions.items())
        yield f"- peers, on a CPU like the first ({SCIPY}; JAX under jit, torch eager, Numba's vectorize): {listed}"
        yield ""
        yield NOTES.rstrip()


def _table(dtype: str, table: dict[str, Any]) -> Iterator[str]:
    targets = [name for name in ("cpu", "cuda") if any(name in found for found in table.values())]
    others = [name for name in PEERS if any(name in found for found in table.values())]
    columns = ["function"]
    for name in targets:
        columns += [f"max, {TITLES[name]}", "mean", "worst argument", "tried"]
    columns += [TITLES[name] for name in others]
    yield "| " + " | ".join(columns) + " |"
    yield "|---" + "|---:" * (len(columns) - 1) + "|"
    for op in ROWS:
        if op in table:
            found = table[op]
            cells = [op]
            for name in targets:
                cells += _own(found.get(name), dtype)
            cells += [_other(found.get(name)) for name in others]
            yield "| " + " | ".join(cells) + " |"


def _own(entry: dict[str, Any] | None, dtype: str) -> list[str]:
    if entry is None:
        return ["–"] * 4
    how = entry["how"] if entry["how"] != "sample" else _count(entry["count"])
    most = f"**{_ulp(entry['most'])}**"
    return [most if how == "all" else f"≥ {most}", _ulp(entry["mean"]), _arguments(entry["at"], dtype), how]


def _other(entry: dict[str, Any] | None) -> str:
    if entry is None:
        return "–"
    most, usual = float(entry["most"]), float(entry["usual"])
    return _ulp(usual) + ("†" if most > 2 * usual + 4 else "")


def _ulp(value: float | str) -> str:
    number = float(value)
    if math.isinf(number):
        return "∞"
    if math.isnan(number):
        return "?"
    return f"{number:.3f}" if number < 10 else f"{number:.1f}" if number < 1000 else f"{number:.1e}"


def _arguments(at: list[str], dtype: str) -> str:
    digits = {"float32": 9, "float64": 17}.get(dtype, 5)
    return ", ".join(f"{float.fromhex(each):.{digits}g}" for each in at)


def _count(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def _exceptions(table: dict[str, Any]) -> Iterator[str]:
    """Functions whose promise is not one unit of the result."""
    reasons: dict[tuple[float, str], list[str]] = {}
    for row in ROWS.values():
        if row.reason:
            reasons.setdefault((row.bound, row.reason), []).append(row.op)
    for (bound, reason), ops in reasons.items():
        yield f"- **{', '.join(ops)}**: at most {bound:g} ulp, {reason}."
    over = [
        f"{op} in {dtype} ({_ulp(found[name]['most'])} ulp on {TITLES[name]})"
        for dtype, rows in sorted(table.items())
        for op, found in rows.items()
        for name in ("cpu", "cuda")
        if not dtype.startswith("complex") and name in found and float(found[name]["most"]) > ROWS[op].bound
    ]
    yield f"- Beyond the promise: {', '.join(over)}." if over else "- Nothing that was measured is beyond these bounds."


COMPLEX_NOTE = """\
Two errors of each: *in norm*, the distance from the exact value in last places of its absolute value; *by parts*,
that of the worse part in last places of this part, which no bound holds for where the part is small beside the other.
Random numbers of moderate and of any size, near 1, -1, i and -i, and near the axes; for inverse functions also at any
distance from those four, down to the least number, and of the greatest size. pow is e^(w log z), whose error in norm
grows with the size of w log z.
"""


def _complex_table(table: dict[str, Any]) -> Iterator[str]:
    yield COMPLEX_NOTE
    yield "| function | in norm | by parts | worst argument, in norm | tried |"
    yield "|---|---:|---:|---:|---:|"
    for op in COMPLEX:
        if op in table:
            entry = table[op]["cpu"]
            at = ", ".join(f"{float.fromhex(each):.9g}" for each in entry["at"])
            cells = [op, f"**{_ulp(entry['most'])}**", _ulp(entry["usual"]), at, _count(entry["count"])]
            yield "| " + " | ".join(cells) + " |"


def _same_bits(same: dict[str, Any], swept: dict[str, Any]) -> Iterator[str]:
    for name, dtypes in sorted(same.items()):
        yield ""
        yield f"## {TITLES[name]} against CPU"
        yield ""
        for dtype, table in sorted(dtypes.items()):
            compared = sum(count for count, _ in table.values())
            differ = {op: number for op, (_, number) in table.items() if number}
            says = ", ".join(f"{op} {number}" for op, number in differ.items()) or "all with the same bits"
            yield f"- {dtype}: {_count(compared)} results of {len(table)} functions compared, {says}."
        pairs = {op: (found[name], found["cpu"]) for op, found in swept.items() if name in found and "cpu" in found}
        whole = {
            op: pair for op, pair in pairs.items() if all(each.get("digest") and each["how"] == "all" for each in pair)
        }
        other = [op for op, (left, right) in whole.items() if left["digest"] != right["digest"]]
        if whole:
            says = f"differing for {', '.join(other)}" if other else "all equal"
            yield f"- float32, all 2^32 arguments: digests of the results of {len(whole)} functions, {says}."
