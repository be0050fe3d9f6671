"""Writes the page docs/accuracy.md from the findings alone."""

from __future__ import annotations

import math
import textwrap
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

`python -m tools.accuracy` makes this page from the measurements in [accuracy.json](accuracy.json).

The error of a result is its distance from the exact value in *ulp* (units in the last place). The
unit is the spacing of the floats next to the exact value. Correct rounding means at most 0.5 ulp.
Below the least normal number, the unit is that of subnormal numbers. An overflow counts as the
power of two after the largest float. Where the exact value is nan the result must be nan; a result
that differs in this counts as an infinite error.

- **float32**, one operand: a kernel steps through bit patterns and compares each result with the
  function's float64 value. The error of that value is below 2^-27 ulp of float32 (see the float64
  table). The worst argument and some thousand hard ones are judged with 40 digits (mpmath).
- **float32**, two operands: random pairs. A quarter of them have arbitrary bits; the others lie
  where the function is hard.
- **float64**: random arguments, in ranges and in exponents, and hard ones. These lie near the ends
  of ranges, near constants where methods change, and, for sin, cos and tan, at the floats closest
  to multiples of pi / 2, up to 6381956970095103 * 2^797. Where C has a long double function, it
  gives the exact values to 64 significant bits, and the worst argument is judged with 40 decimal
  digits. Other functions use 40 digits throughout.
- **float16**, **bfloat16**: all arguments. These dtypes compute in float32 and round once. An
  error above 0.5 ulp means that an error of float32 moved a result across the midpoint of two
  floats.

*all*: every number of the dtype was tried. *1/n*: every n-th bit pattern was tried. ≥ marks
functions for which fewer than all were tried; the largest error is at least this. Functions that
IEEE 754 or C define exactly are not listed, because the tests compare them with NumPy by bits.
"""

NOTES = """\
A peer's number is its largest error among normal arguments with normal results. † marks a peer
that errs more than twice that plus four ulp at subnormal numbers (some flush them to zero) or at
the ends of the range. A dash means that the peer lacks the function in that dtype, or that a target
was not measured since the definition changed.
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
            yield _item(f"{TITLES[name]}: {about[name]}")
    if versions := about.get("peers"):
        listed = ", ".join(f"{name} {version}" for name, version in versions.items())
        yield _item(
            f"peers, on a CPU like the first ({SCIPY}; JAX under jit, torch eager, Numba's vectorize): {listed}"
        )
        yield ""
        yield NOTES.rstrip()


def _item(text: str) -> str:
    """An item of a list, in lines of at most 99 characters."""
    return textwrap.fill(f"- {text}", 99, subsequent_indent="  ", break_on_hyphens=False)


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
        yield _item(f"**{', '.join(ops)}**: at most {bound:g} ulp, {reason}.")
    over = [
        f"{op} in {dtype} ({_ulp(found[name]['most'])} ulp on {TITLES[name]})"
        for dtype, rows in sorted(table.items())
        for op, found in rows.items()
        for name in ("cpu", "cuda")
        if not dtype.startswith("complex") and name in found and float(found[name]["most"]) > ROWS[op].bound
    ]
    yield _item(f"Beyond the promise: {', '.join(over)}." if over else "No measured error is beyond these bounds.")


COMPLEX_NOTE = """\
Each function has two errors. The error *in norm* is the distance from the exact value in ulp of
its absolute value. The error *by parts* is that of the worse part in ulp of this part. It has no
bound where one part is small beside the other. The arguments are random numbers of moderate and of
any size, near 1, -1, i and -i, and near the axes. For inverse functions they also lie at any
distance from those four points, down to the least number, and include the largest numbers. pow is
e^(w log z), whose error in norm grows with the size of w log z.
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
