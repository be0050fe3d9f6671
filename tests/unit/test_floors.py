"""The house keeps its shape: imports point down, files and functions stay small, every public name is explained."""

import ast
import gc
import json
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from fusec.passes import PIPELINES, PassRow

ROOT = Path(__file__).parents[2]
FLOORS = (
    {"__main__"},
    {"cli", "graph", "xp"},
    {"fusion"},
    {"graphs", "library", "random"},
    {"kernels"},
    {"dispatch"},
    {"compiler"},
    {"frontends", "codegen", "kinds", "runtime"},
    {"passes"},
    {"math"},
    {"arguments", "environment", "language"},
    {"errors", "ir"},
    {"base", "grammar", "version"},
)


LIKE_NUMPY = {  # modules whose functions have the parameters of NumPy's, CuPy's or numexpr's
    "fusec.base.records",
    "fusec.fusion.at_once.sets",
    "fusec.fusion.functions.arranging",
    "fusec.fusion.functions.comparing",
    "fusec.fusion.functions.creation",
    "fusec.fusion.evaluate",
    "fusec.fusion.functions.ranks",
    "fusec.fusion.functions.reducing",
    "fusec.fusion.functions.routines",
    "fusec.kernels.decorators",
    "fusec.kernels.reduction_decorator",
    "fusec.kernels.elementwise_kernel",
    "fusec.kernels.reduction_kernel",
    "fusec.kernels.scan_kernel",
    "fusec.kernels.vectorize",
    "fusec.library.cumulative",
    "fusec.library.normalisation",
    "fusec.library.reductions",
    "fusec.xp.creation",
    "fusec.xp.random",
}
SEEN_BY_RUNTIME = {
    f"fusec.base.{name}" for name in ("dtypes", "kernel_abi", "locks", "matrices", "recorded", "records")
}
BANNED_NAMES = {"utils", "util", "common", "helpers", "misc", "core"}
WITHOUT_A_LOCK = {
    "fusec.errors.base",  # the catalogue is filled while classes are defined, under the lock of the import
    "fusec.base.dtypes",  # rows are interned by one dict.setdefault, which is atomic
}
NAMED_BY_A_GRAMMAR = {
    f"fusec.{name}" for name in ("frontends.build", "frontends.c.build", "frontends.python.build", "graphs.parse")
}  # methods are rules, explained there
CONTAINERS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
MUTATORS = {"append", "add", "update", "setdefault", "pop", "clear", "extend", "insert", "remove", "popitem"}


def modules() -> dict[str, Path]:
    found = {}
    for folder, name in (("fusec", "fusec"), ("grammar", "fusec.grammar"), ("runtime", "fusec.runtime")):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            if name != "fusec" or parts[0] not in ("grammar", "runtime"):  # those may be links to the other two
                found[".".join((name, *(part for part in parts if part != "__init__")))] = path
    return found


MODULES = modules()


@pytest.fixture(scope="module", autouse=True)
def _trees_are_no_garbage() -> Iterator[None]:
    """The collector does not go through a million nodes over and over, which are gone when these tests are over."""
    gc.disable()
    yield
    tree_of.cache_clear()
    nodes_of.cache_clear()
    gc.enable()


def each_module(law: Callable[[str], None]) -> Callable[[], None]:
    """One test of all modules, which names those that break the law: a test for each would cost more than the laws."""

    def test() -> None:
        broken = []
        for name in MODULES:
            try:
                law(name)
            except AssertionError as error:
                broken.append(f"{name}: {error}")
        assert not broken, "\n".join(broken)

    return test


@cache
def tree_of(name: str) -> ast.Module:
    """The syntax tree of a module: parsed where it is looked at, not in every process that collects tests."""
    return ast.parse(MODULES[name].read_text())


@cache
def nodes_of(name: str) -> tuple[ast.AST, ...]:
    """All nodes of a module's tree."""
    return tuple(ast.walk(tree_of(name)))


def floor_of(package: str) -> int:
    rows = [number for number, row in enumerate(FLOORS) if package in row]
    assert rows, f"fusec.{package} stands on no floor; give it one in FLOORS and in ARCHITECTURE.md"
    return rows[0]


@cache
def imported(name: str) -> frozenset[str]:
    """Modules of fusec that a module names in any import, wherever it stands."""
    found = set()
    for node in nodes_of(name):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            base = node.module or ""
            found |= {f"{base}.{alias.name}" if f"{base}.{alias.name}" in MODULES else base for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return frozenset(found & MODULES.keys() - {name, "fusec"})


def test_the_house_has_at_most_fourteen_floors() -> None:
    assert len(FLOORS) + 1 <= 14, "fusec/__init__.py, which cli imports and which imports graph, is one more"


@each_module
def test_imports_point_down(name: str) -> None:
    if name == "fusec":
        return
    own = name.split(".")[1]
    for other in imported(name):
        if (folder := other.split(".")[1]) != own:
            assert floor_of(folder) > floor_of(own), f"{name} imports {other}, which does not lie below it"
            seen = other in SEEN_BY_RUNTIME or folder in ("errors", "environment")
            assert own != "runtime" or seen, f"a runtime sees only kernels, not {other}"


def circles(imports: Mapping[str, Collection[str]]) -> set[frozenset[str]]:
    """What imports each other, however far around: the strongly connected parts of the imports."""
    below: dict[str, set[str]] = {name: {name} for name in imports}
    while True:
        wider = {name: set().union(*(below[each] for each in {name, *imports[name]})) | below[name] for name in below}
        if wider == below:
            break
        below = wider
    return {frozenset(other for other in found if name in below[other]) for name, found in below.items()}


def test_no_modules_import_each_other_in_a_circle() -> None:
    found = {each for each in circles({name: imported(name) for name in MODULES}) if len(each) > 1}
    assert not found, "\n".join(", ".join(sorted(each)) for each in found)


def test_no_folders_of_a_folder_import_each_other_in_a_circle() -> None:
    imports: dict[str, set[str]] = {}
    for name in MODULES:
        room = _folder(name)
        imports.setdefault(room, set()).update({_folder(other) for other in imported(name)} - {room})
    found = {each for each in circles(imports) if len(each) > 1}
    assert not found, "\n".join(", ".join(sorted(each)) for each in found)


def _folder(name: str) -> str:
    """The folder inside a folder of the package in which a module is, or the module itself."""
    return ".".join(name.split(".")[: 3 if len(MODULES[name].relative_to(ROOT).parts) > 3 else None])


@each_module
def test_files_and_functions_stay_small(name: str) -> None:
    assert len(MODULES[name].read_text().splitlines()) <= 500
    for node in nodes_of(name):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < 60, f"{name}.{node.name} is longer than 60 lines"


def test_no_class_has_the_name_of_another() -> None:
    places: dict[str, list[str]] = {}
    for module in MODULES:
        for node in nodes_of(module):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(module)
    twins = {name: sorted(each) for name, each in places.items() if len(each) > 1}
    assert not twins, "\n".join(f"{name}: {', '.join(each)}" for name, each in twins.items())


@each_module
def test_functions_take_at_most_five_parameters(name: str) -> None:
    if name in LIKE_NUMPY:
        return
    long = set()
    for node in nodes_of(name):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
            if len(names) - (names[:1] in (["self"], ["cls"])) > 5:
                long.add(node.name)
    assert not long, f"{', '.join(sorted(long))} takes more than five parameters: make it take a record"


@each_module
def test_every_public_name_is_explained(name: str) -> None:
    tree = tree_of(name)
    assert ast.get_docstring(tree), f"{name} has no docstring"
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_"]
    scopes = [tree, *(classes if name not in NAMED_BY_A_GRAMMAR else [])]
    for scope in scopes:
        for node in scope.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_":
                overload = any(isinstance(mark, ast.Name) and mark.id == "overload" for mark in node.decorator_list)
                assert overload or ast.get_docstring(node), f"{name}: {node.name} has no docstring"


@each_module
def test_names_say_what_is_inside(name: str) -> None:
    assert not BANNED_NAMES & set(name.split("."))


def is_state(node: ast.AST, containers: set[str]) -> bool:
    """Whether a statement inside a function rebinds a module's name or changes a container that belongs to it."""
    match node:
        case ast.Global():
            return True
        case ast.Subscript(value=ast.Name(id=owner), ctx=ast.Store() | ast.Del()):
            return owner in containers
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=verb)):
            return owner in containers and verb in MUTATORS
    return False


@cache
def decorators() -> set[str]:
    """Functions that are applied as decorators somewhere: they fill tables at import, under its lock."""
    nodes = (node for name in MODULES for node in nodes_of(name))
    marks = [mark for node in nodes for mark in getattr(node, "decorator_list", [])]
    functions = [mark.func if isinstance(mark, ast.Call) else mark for mark in marks]
    return {ast.unparse(function).rpartition(".")[2] for function in functions}


@each_module
def test_mutable_state_of_a_module_has_a_lock(name: str) -> None:
    tree = tree_of(name)
    containers = set()
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, CONTAINERS):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            containers |= {target.id for target in targets if isinstance(target, ast.Name)}
    if not containers and not any(isinstance(node, ast.Global) for node in nodes_of(name)):
        return
    scopes = [node for node in tree.body if getattr(node, "name", "") not in decorators()]
    functions = [node for scope in scopes for node in ast.walk(scope) if isinstance(node, ast.FunctionDef)]
    changed = [node for function in functions for node in ast.walk(function) if is_state(node, containers)]
    if changed and name not in WITHOUT_A_LOCK:
        locks = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and node.attr in ("Lock", "RLock", "lock")
        ]
        assert locks, f"{name}, line {changed[0].lineno}: state of the module changes without a lock"


def test_importing_fusec_imports_no_heavy_library() -> None:
    program = """
import json, sys, time
import numpy
start = time.perf_counter()
import fusec
elapsed = time.perf_counter() - start
heavy = {"llvmlite", "lark", "cuda", "scipy", "ml_dtypes"}
print(json.dumps({"heavy": sorted(heavy & set(sys.modules)), "milliseconds": 1e3 * elapsed}))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    report = json.loads(run.stdout)
    assert report["heavy"] == []
    assert report["milliseconds"] < 1000  # the aim is 30; a loaded machine must not fail the suite


def test_fused_functions_import_no_front_end_and_no_graphs_before_they_need_them() -> None:
    program = "import sys, fusec; fusec.fuse; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    unused = {"fusec.frontends.syntax", "fusec.kernels.decorators", "fusec.graphs.building", "fusec.fusion.graph_calls"}
    assert not unused & set(run.stdout.split())


ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()


def test_the_map_shows_the_floors_and_the_passes_as_they_are() -> None:
    shown = ARCHITECTURE.partition("## Floors")[2].split("```")[1].strip().splitlines()
    assert [{name.strip() for name in row.partition("  ")[0].split("|")} for row in shown] == list(FLOORS)
    shown = ARCHITECTURE.partition("**Passes.**")[2].split("```")[1]
    rows = [f"{kind} {', '.join(map(place_of, steps))}" for kind, steps in PIPELINES.items()]
    assert " ".join(shown.split()) == " ".join(rows)


def place_of(step: PassRow) -> str:
    """A pass as ARCHITECTURE.md has it: its module, and for which targets and modes it runs."""
    only = {"cpu": "CPU", "device": "devices"}.get(step.target or "", "")
    modes = "" if "strict" in step.modes else "fp=" + "/".join(step.modes)
    marks = " ".join(filter(None, (only, modes)))
    parts = f" [{', '.join(map(place_of, step.parts))}]" if step.parts else ""
    return step.path.partition(".")[0] + (f" ({marks})" if marks else "") + parts


def every_step(steps: Iterable[PassRow]) -> Iterator[PassRow]:
    for step in steps:
        yield step
        yield from every_step(step.parts)


STEPS = tuple(every_step(step for steps in PIPELINES.values() for step in steps))


def test_passes_run_through_pipelines_alone() -> None:
    allowed = {"fusec.passes": {"run", "run_few", "Facts", "Loops", "Native", "Target"}}
    for step in STEPS:
        assert callable(step.load()), step.path
        if step.by != "run":
            allowed.setdefault(step.by, set()).update(f"{step.path.partition('.')[0]}.{name}" for name in step.imports)
    for name in MODULES:
        if name == "fusec" or (folder := name.split(".")[1]) == "passes":
            continue
        for node in nodes_of(name):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fusec.passes"):
                module = (node.module or "").removeprefix("fusec.passes").lstrip(".")
                for alias in node.names:
                    if module:
                        assert f"{module}.{alias.name}" in allowed[folder], f"{name} runs {module}.{alias.name}"
                    else:
                        assert alias.name in allowed["fusec.passes"], f"{name} imports {alias.name} of fusec.passes"


def test_every_pass_says_what_it_requires_and_ensures() -> None:
    for step in STEPS:
        text = step.load().__doc__ or ""
        assert "Requires:" in text, step.path
        assert "Ensures:" in text, step.path


def test_every_pass_is_in_a_pipeline_or_serves_one() -> None:
    wanted = {f"fusec.passes.{step.path.partition('.')[0]}" for step in STEPS}
    every = {name for name in MODULES if name.startswith("fusec.passes.")}
    while wider := {other for name in wanted for other in imported(name) & every} - wanted:
        wanted |= wider
    assert wanted == every


def test_the_map_names_every_module_and_folder() -> None:
    for path in [*(ROOT / "fusec").glob("*.py"), *(ROOT / "tests").iterdir(), *ROOT.iterdir()]:
        is_code = path.suffix == ".py" or (path.is_dir() and any(path.rglob("*.py")))
        if is_code and path.name[0] not in "._" and not path.name.endswith((".egg-info", "build", "dist")):
            assert path.name in ARCHITECTURE or path.stem == "version", f"{path.name} is not on the map"


def test_the_map_sends_nobody_to_what_is_not_there() -> None:
    """Each row of "Where to look" names files that exist, and what stands in one of them."""
    rows = ARCHITECTURE.partition("## Where to look")[2].partition("\n## ")[0].splitlines()
    for row in rows:
        files = [ROOT / name for name in re.findall(r"`((?:fusec|runtime)/[\w/.]+)`", row)]
        assert all(path.exists() for path in files), row
        names = re.findall(r"`([^`]+)`", row.rsplit("|", 2)[1]) if files else []
        texts = "".join(path.read_text() for path in files if path.is_file())
        assert all(name in texts for name in names), row
