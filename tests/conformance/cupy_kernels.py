"""Takes every literal ElementwiseKernel of a CuPy checkout through fusec: parse, type-check, text for three targets.

``python tests/conformance/cupy_kernels.py PATH [--nvrtc] [--clang] [-v]`` prints one line for every kernel that is not
portable and a summary; the exit status is 1 if a kernel fails that `not_portable.toml` does not list, or if one it
lists has become portable. The strings themselves are CuPy's and are not part of this project.
"""

from __future__ import annotations

import argparse
import ast
import itertools
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

from fusec.base.kernel_abi import Kernel
from fusec.compiler import pipeline
from fusec.dispatch import elementwise
from fusec.dispatch.shown import Showing
from fusec.errors import FusecError
from fusec.kernels.elementwise_kernel import ElementwiseKernel

HERE = Path(__file__).parent
PARAMETERS = ("in_params", "out_params", "operation", "name", "reduce_dims", "preamble", "no_return", "return_tuple")
CANDIDATES = ("float32", "int32", "complex64", "int64", "uint8", "bool")
TRIES = 1500


@dataclass
class Site:
    """One construction of an ElementwiseKernel in CuPy's sources, its arguments literal."""

    place: str
    arguments: dict[str, object] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """File and kernel name, which survives changes of line numbers."""
        return f"{self.place.rsplit(':', 1)[0]}:{self.arguments.get('name', 'kernel')}"


def sites(checkout: Path) -> Iterator[Site]:
    """Every construction whose declarations and body are literal text."""
    for path in sorted(itertools.chain(checkout.rglob("*.py"), checkout.rglob("*.pyx"))):
        relative = path.relative_to(checkout)
        if relative.parts[0] in ("tests", "docs") or "ElementwiseKernel(" not in (text := path.read_text()):
            continue
        constants = dict(_constants(text))
        for match in re.finditer(r"\bElementwiseKernel\(", text):
            call = _call(text[match.start() :])
            if call is None:
                continue
            arguments = {name: _literal(node, constants) for name, node in call.items()}
            if all(isinstance(arguments.get(name), str) for name in PARAMETERS[:3]):
                if not arguments["operation"].strip():
                    continue
                given = {name: value for name, value in arguments.items() if value is not None}
                incomplete = sorted(set(arguments) - set(given))
                if incomplete:
                    continue  # built from pieces at run time
                yield Site(f"{relative}:{text[: match.start()].count(chr(10)) + 1}", given)


def _call(text: str) -> dict[str, ast.expr] | None:
    """The arguments of the call that `text` starts with, by parameter name."""
    depth, end = 0, 0
    lines = text.split("\n")
    try:
        for token in tokenize.generate_tokens(StringIO(text).readline):
            if token.type == tokenize.OP and token.string in "([{":
                depth += 1
            elif token.type == tokenize.OP and token.string in ")]}":
                depth -= 1
                if depth == 0:
                    row, column = token.end
                    end = sum(len(line) + 1 for line in lines[: row - 1]) + column
                    break
        tree = ast.parse(text[:end].strip(), mode="eval").body
    except (SyntaxError, tokenize.TokenError):
        return None
    if not isinstance(tree, ast.Call):
        return None
    named = dict(zip(PARAMETERS, tree.args, strict=False))
    named |= {word.arg: word.value for word in tree.keywords if word.arg}
    return named


def _constants(text: str) -> Iterator[tuple[str, str]]:
    """Module-level names bound to literal text."""
    for match in re.finditer(r"^(\w+) = (?=[\"'(])", text, re.MULTILINE):
        rest = text[match.end() :]
        for stop in re.finditer(r"(?:'''|\"\"\"|['\")])\s*$", rest, re.MULTILINE):
            try:
                value = ast.literal_eval(rest[: stop.end()].strip())
            except (SyntaxError, ValueError):
                continue
            if isinstance(value, str):
                yield match.group(1), value
            break


def _literal(node: ast.expr, constants: dict[str, str]) -> object:
    match node:
        case ast.Name(id=name):
            return constants.get(name)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            a, b = _literal(left, constants), _literal(right, constants)
            return a + b if isinstance(a, str) and isinstance(b, str) else None
        case _:
            try:
                return ast.literal_eval(node)
            except ValueError:
                return None


def assignments(kernel: ElementwiseKernel) -> Iterator[dict[str, str]]:
    """Dtypes for the placeholders, likely ones first."""
    names = kernel.signature.placeholders
    choices = itertools.product(CANDIDATES, repeat=len(names))
    for types in itertools.islice(choices, TRIES):
        yield dict(zip(names, types, strict=True))


@dataclass
class Outcome:
    """What became of one kernel: what was generated, or the first error of the most promising dtypes."""

    site: Site
    types: dict[str, str]
    kernels: dict[str, Kernel]
    problem: str = ""
    metal_problem: str = ""


def attempt(site: Site, by_value: Sequence[str] = ()) -> Outcome:
    """Parse, find dtypes that type-check, and generate for every target; by_value: numbers among the raw parameters."""
    arguments = dict(site.arguments)
    options = tuple(arguments.pop("options", ()))
    try:
        kernel = ElementwiseKernel(**arguments, options=(*options, "-fsingle-precision-constant"))
    except FusecError as error:
        return Outcome(site, {}, {}, str(error))
    first = ""
    for types in assignments(kernel):
        try:
            bound = kernel.shown(Showing(types=types, scalars=by_value)).bound
            spec = elementwise.specialisation(bound.request, *bound.launches)
            pipeline.program_of(kernel.definition, spec)
        except FusecError as error:
            first = first or str(error)
            continue
        made = {target: pipeline.generate(kernel.definition, spec, target) for target in ("llvm", "cuda")}
        try:
            made["metal"] = pipeline.generate(kernel.definition, spec, "metal")
        except FusecError as error:
            return Outcome(site, types, made, metal_problem=str(error))
        return Outcome(site, types, made)
    return Outcome(site, {}, {}, first)


def main() -> int:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--nvrtc", action="store_true", help="have NVRTC compile the CUDA texts for five architectures")
    parser.add_argument("--clang", action="store_true", help="check the Metal texts with clang")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    listed = tomllib.loads((HERE / "not_portable.toml").read_text())
    outcomes = [attempt(site, listed["by_value"].get(site.key, ())) for site in sites(options.checkout)]
    failed = [outcome for outcome in outcomes if outcome.problem]
    unlisted = [outcome for outcome in failed if outcome.site.key not in listed["refused"]]
    metal = [outcome for outcome in outcomes if outcome.metal_problem]
    unlisted_metal = [outcome for outcome in metal if outcome.site.key not in listed["not_on_metal"]]
    for outcome in failed if options.verbose else unlisted:
        print(f"--- {outcome.site.place} {outcome.site.key}\n{outcome.problem}")
    for outcome in metal if options.verbose else unlisted_metal:
        print(f"--- Metal: {outcome.site.place} {outcome.site.key} {outcome.types}\n{outcome.metal_problem}")
    keys = {outcome.site.key for outcome in failed}, {outcome.site.key for outcome in metal}
    stale = (set(listed["refused"]) - keys[0]) | (set(listed["not_on_metal"]) - keys[1])
    for key in sorted(stale):
        print(f"--- listed as not portable, but it is: {key}")
    complaints = check_texts(outcomes, options.nvrtc, options.clang)
    done = len(outcomes) - len(failed)
    print(
        f"{len(outcomes)} kernels: {done} portable to CPU and CUDA, {done - len(metal)} to Metal, {len(failed)} refused"
    )
    return 1 if unlisted or unlisted_metal or stale or complaints else 0


def check_texts(outcomes: list[Outcome], nvrtc: bool, clang: bool) -> int:
    """Hand the texts to llvmlite and, if asked for, to NVRTC and clang; returns the number of refusals."""
    import llvmlite.binding as llvm

    complaints = 0
    for outcome in outcomes:
        if "llvm" in outcome.kernels:
            try:
                llvm.parse_assembly(outcome.kernels["llvm"].source).verify()
            except RuntimeError as error:
                complaints += 1
                print(f"--- LLVM refuses {outcome.site.place} {outcome.types}: {error}")
    if nvrtc or clang:
        sys.path.insert(0, str(HERE))
        import target_checks

        complaints += target_checks.run(outcomes, nvrtc, clang)
    return complaints


if __name__ == "__main__":
    raise SystemExit(main())
