"""The command line: what it prints, where errors point, and its exit codes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fusec.cli import main
from fusec.errors.base import CATALOGUE

SAXPY = ["compile", "-e", "z = 2.5f * x + y", "-i", "T x, T y", "-o", "T z", "--name", "saxpy", "--types", "T=float32"]
FILE = """
[kernel.twice]
in_params = "T x"
out_params = "T z"
operation = "z = x + x"
types = { T = "float32" }

[kernel.halved]
in_params = "float64 x"
out_params = "float64 z"
operation = '''
double half = 0.5;
z = half * x
'''
"""


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.toml"
    path.write_text(FILE)
    return path


@pytest.mark.parametrize(
    ("target", "mark"),
    [("cuda", "__global__"), ("metal", "kernel void"), ("llvm", "define"), ("asm", "saxpy"), ("ir", "saxpy")],
)
def test_every_target_has_a_text(target: str, mark: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main([*SAXPY, "--target", target]) == 0
    text = capsys.readouterr().out
    assert mark in text
    assert text.endswith("\n")


def test_out_writes_the_same_text_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(SAXPY) == 0
    shown = capsys.readouterr().out
    assert main.main([*SAXPY, "--out", str(tmp_path / "saxpy.cu")]) == 0
    assert capsys.readouterr().out == ""
    assert (tmp_path / "saxpy.cu").read_text() == shown


def test_a_file_gives_all_its_kernels_or_the_one_named(kernels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["compile", str(kernels)]) == 0
    both = capsys.readouterr().out
    assert both.index("// twice(") < both.index("// halved(")
    assert both.count("fusec_store(") == 1
    assert main.main(["compile", str(kernels), "--name", "halved"]) == 0
    one = capsys.readouterr().out
    assert one.partition('extern "C"')[2] in both
    assert "double" in one
    assert main.main(["compile", str(kernels), "--target", "ir"]) == 0
    assert "# kernel halved" in capsys.readouterr().out


def test_a_file_says_which_inputs_are_passed_by_value(kernels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernels.write_text(
        FILE.replace('in_params = "T x"', 'in_params = "T a, T x"\nscalars = ["a"]').replace("x + x", "a * x")
    )
    assert main.main(["compile", str(kernels)]) == 0
    assert "    float a," in capsys.readouterr().out
    kernels.write_text(FILE.replace('in_params = "T x"', 'in_params = "T x"\nscalars = "x"'))
    assert main.main(["compile", str(kernels)]) == 1
    assert f"{kernels}:4:1: error: kernel 'twice': 'scalars' is not a list" in capsys.readouterr().err


def test_each_kernel_of_a_file_hears_what_it_knows(kernels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["compile", str(kernels), "--types", "T=int32", "--scalars", "x"]) == 0
    assert "    int x," in capsys.readouterr().out
    assert main.main(["compile", str(kernels), "--types", "U=int32"]) == 2
    assert "have no U; known: " in capsys.readouterr().err
    assert main.main(["compile", str(kernels), "--scalars", "q"]) == 2
    assert "have no q; known: " in capsys.readouterr().err


def test_an_unknown_key_is_marked_where_it_stands(kernels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernels.write_text(FILE + 'operatoin = "operation"\n')
    assert main.main(["compile", str(kernels)]) == 1
    said = capsys.readouterr().err.splitlines()
    line = FILE.count("\n") + 1
    assert said[0] == (
        f"{kernels}:{line}:1: error: kernel 'halved': unknown key 'operatoin'; did you mean 'operation'? [F402]"
    )
    assert said[3].endswith("| ^^^^^^^^^")


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        (["compile", "KERNELS:twice"], "choose"),
        (["compile", "pack/age.py:k"], "fusec compile pack/age.py --name k"),
        (["compile", "pack/age:k"], "fusec compile pack/age.py --name k"),
        (["compile", "./age.py"], "cannot read ./age.py"),
        (["compile", "KERNELS", "-i", "float32 x"], "--inputs goes with --expr"),
    ],
)
def test_a_command_that_nearly_works_is_told_how(
    arguments: list[str], cure: str, kernels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main([argument.replace("KERNELS", str(kernels)) for argument in arguments]) == 2
    cure = f"fusec compile {kernels} --name twice" if cure == "choose" else cure
    assert cure in capsys.readouterr().err


def test_missing_types_are_asked_for_as_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(SAXPY[:-2]) == 1
    assert "hint: --types T=float32" in capsys.readouterr().err


def test_an_unknown_scalar_is_told_the_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main([*SAXPY, "--scalars", "q"]) == 1
    said = capsys.readouterr().err
    assert "'q'" in said
    assert "x, y" in said


def test_the_module_runs_as_a_command() -> None:
    run = subprocess.run([sys.executable, "-m", "fusec", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("fusec ")


def test_types_may_be_given_several_times(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["compile", "-e", "z = x + y", "-i", "T x, U y", "-o", "T z", "--target", "ir"]
    scalars = ["--scalars", "x", "--scalars", "y"]
    assert main.main([*command, "--types", "T=float32,U=int8", "--scalars", "x,y"]) == 0
    together = capsys.readouterr().out
    assert main.main([*command, "--types", "T=float32", "--types", "U=int8", *scalars]) == 0
    assert capsys.readouterr().out == together


def test_types_on_the_command_line_override_those_of_the_file(
    kernels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["compile", str(kernels), "--name", "twice"]) == 0
    single = capsys.readouterr().out
    assert main.main(["compile", str(kernels), "--name", "twice", "--types", "T=float64"]) == 0
    assert capsys.readouterr().out != single


def test_a_kernel_of_a_module_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = "import fusec\nclass box:\n    k = fusec.ElementwiseKernel('float32 x', 'float32 z', 'z = -x', 'minus')\n"
    (tmp_path / "module_of_kernels.py").write_text(module)
    monkeypatch.chdir(tmp_path)
    assert main.main(["compile", "module_of_kernels:box.k"]) == 0
    assert "minus" in capsys.readouterr().out
    assert main.main(["compile", "module_of_kernels:boxx.k"]) == 2
    assert "did you mean 'box'" in capsys.readouterr().err
    assert main.main(["compile", "module_of_kernels:box"]) == 2
    assert "not a kernel" in capsys.readouterr().err


def test_an_error_in_a_file_points_at_its_line_and_column(kernels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernels.write_text(FILE.replace("z = half * x", "z = halve * x"))
    line = next(at for at, text in enumerate(kernels.read_text().splitlines(), 1) if "halve *" in text)
    assert main.main(["compile", str(kernels), "--name", "halved"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"{kernels}:{line}:5: error: ")
    source, caret = said.splitlines()[2:4]
    assert source.endswith("z = halve * x")
    assert caret.index("^") == source.index("halve")
    assert "half" in said.splitlines()[-1]


REDUCTION = """
[reduction.length]
in_params = "T x"
out_params = "T z"
map_expr = "x * x"
reduce_expr = "a + b"
post_map_expr = "z = sqrt(a)"
identity = 0
types = { T = "float32" }
"""


@pytest.mark.parametrize(("target", "kernel"), [("cuda", "__global__"), ("metal", "kernel void")])
def test_a_reduction_is_printed_as_all_its_kernels(
    target: str, kernel: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kernels.toml"
    for more, count in (("", 2), ("shape = [1000]", 1), ("shape = [65, 9]\naxis = 0", 2), ("shape = [9, 9]", 1)):
        path.write_text(f"{REDUCTION}{more}\n")
        assert main.main(["compile", str(path), "--target", target]) == 0
        assert capsys.readouterr().out.count(f"{kernel} ") == count
    path.write_text(FILE + REDUCTION)
    assert main.main(["compile", str(path), "--target", "cuda"]) == 0
    assert capsys.readouterr().out.count("__global__ ") == 4


SCAN = """
[scan.before]
in_params = "T x"
out_params = "T y"
map_expr = "x"
scan_expr = "a + b"
post_map_expr = "y = a"
identity = 0
inclusive = false
types = { T = "float32" }
"""


@pytest.mark.parametrize(("target", "kernel"), [("cuda", "__global__"), ("metal", "kernel void"), ("llvm", "define ")])
def test_a_scan_is_printed_as_all_its_kernels(
    target: str, kernel: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kernels.toml"
    for more, count in (("", 2 if target == "cuda" else 3), ("shape = [1000]", 1), ("shape = [65, 9]\naxis = 0", 1)):
        path.write_text(f"{SCAN}{more}\n")
        assert main.main(["compile", str(path), "--target", target]) == 0
        assert capsys.readouterr().out.count(f"{kernel}") == (1 if target == "llvm" else count)
    path.write_text(FILE + REDUCTION + SCAN)
    assert main.main(["compile", str(path), "--target", "cuda"]) == 0
    assert capsys.readouterr().out.count("__global__ ") == 6


def test_an_error_in_a_reduction_has_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kernels.toml"
    path.write_text(REDUCTION.replace("x * x", "x * y"))
    assert main.main(["compile", str(path)]) == 1
    assert capsys.readouterr().err.startswith(f"{path}:5:17: error: ")


def test_an_error_in_an_expression_has_a_place_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["compile", "-e", "z = x +* 2", "-i", "float32 x", "-o", "float32 z"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith("fusec: error: ")
    assert said[1] == " --> kernel 'kernel', operation, line 1, column 10"


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("[kernel.a]\nin_params = \n", "F400", 2),
        ("", "F401", 1),
        ("[kernel]\n", "F401", 1),
        ("title = 'nothing'\n", "F405", 1),
        ("kernel = 3\n", "F405", 1),
        ("# kernels\n[[kernel]]\n", "F405", 2),
        ("[kernel.a]\nin_params = ''\nout_params = 'float32 z'\n", "F402", 1),
        ("[kernel.a]\noperations = ''\n", "F402", 2),
        ("[kernel.a]\nin_params = 3\nout_params = ''\noperation = ''\n", "F402", 2),
        ("\n[kernel]\nab = 1\n", "F402", 3),
        ("[reduction.a]\noperation = ''\n", "F402", 2),
        ("[reduction.a]\nin_params = ''\nout_params = 'float32 z'\nmap_expr = ''\n", "F402", 1),
        ("[reduction.a]\nidentity = []\n", "F402", 2),
        ("[reduction.a]\naxis = 'last'\n", "F402", 2),
        ("[scan.a]\ninclusive = 1\n", "F402", 2),
        ("[scan.a]\nreduce_expr = ''\n", "F402", 2),
    ],
)
def test_a_malformed_file_is_the_users_error(
    text: str, code: str, line: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    assert main.main(["compile", str(path)]) == 1
    said = capsys.readouterr().err.splitlines()[0]
    assert f"[{code}]" in said
    assert said.startswith(f"{path}:{line}:")


@pytest.mark.parametrize(("name", "meant"), [("scans", "scan"), ("reduce", ""), ("reductions", "reduction")])
def test_a_misspelt_table_is_not_passed_over(
    name: str, meant: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(f"{REDUCTION}\n{SCAN.replace('[scan.', f'[{name}.')}")
    assert main.main(["compile", str(path)]) == 1
    said, line = capsys.readouterr().err.splitlines()[0], path.read_text().splitlines().index(f"[{name}.before]") + 1
    cure = f", did you mean '{meant}'?" if meant else ""
    assert said == f"{path}:{line}:2: error: unknown table '{name}'{cure} [F405]"


@pytest.mark.parametrize(
    "arguments",
    [
        ["compile"],
        ["compile", "no/such/file"],
        ["compile", "no_such_module_anywhere:kernel"],
        ["compile", "-e", "z = x", "-i", "float32 x"],
        [*SAXPY[:-1], "T"],
        ["explain", "F9999"],
        ["cache", "prune"],
    ],
)
def test_a_fault_of_the_command_line_exits_with_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(arguments) == 2
    assert capsys.readouterr().err.startswith("fusec: ")


def test_argparse_faults_exit_with_two_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main.main(["compile", "--target", "fortran"])
    assert exit_.value.code == 2
    for amount in ("-3", "nan", "inf", "much"):
        with pytest.raises(SystemExit) as exit_:
            main.main(["cache", "prune", "--days", amount])
        assert exit_.value.code == 2
    assert "argument --days: 'much' is not a number" in capsys.readouterr().err


def test_every_error_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["explain"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == sorted(CATALOGUE)
    for code in sorted(CATALOGUE):
        assert main.main(["explain", code.lower()]) == 0
        assert capsys.readouterr().out.startswith(code)


def test_an_unknown_code_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["explain", "F135"]) == 0
    shown = capsys.readouterr().out
    assert "{cure}" not in shown
    assert "# wrong" in shown
    assert "# right" in shown
    assert main.main(["explain", "F4000"]) == 2
    assert "did you mean 'F400'?" in capsys.readouterr().err


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert main.is_coloured(terminal=True)
    assert not main.is_coloured(terminal=False)
    monkeypatch.setenv("TERM", "dumb")
    assert not main.is_coloured(terminal=True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not main.is_coloured(terminal=True)


def test_colour_adds_nothing_but_colour() -> None:
    error = CATALOGUE["F401"]("kernels.toml").at()  # type: ignore[call-arg]
    coloured = main.report(error, coloured=True)
    for style in ("0", "1", "1;31", "1;36"):
        coloured = coloured.replace(f"\x1b[{style}m", "")
    assert coloured == main.report(error, coloured=False)


def test_the_cache_commands_see_the_same_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from fusec.compiler.disk_cache import default_cache

    monkeypatch.delenv("FUSEC_CACHE", raising=False)
    monkeypatch.setenv("FUSEC_CACHE_DIR", str(tmp_path / "cache"))
    store = default_cache()
    assert store is not None
    store.put("kernel", "a", b"1", label="first")
    store.put("kernel", "b", b"2", label="second")
    assert main.main(["cache", "path"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'cache'}\n"
    assert main.main(["cache", "ls"]) == 0
    assert "in 2 entries" in capsys.readouterr().out
    assert main.main(["cache", "prune", "--days", "1"]) == 0
    assert capsys.readouterr().out == "removed 0 entries\n"
    assert main.main(["cache", "prune", "--megabytes", "0"]) == 0
    assert capsys.readouterr().out == "removed 2 entries\n"
    store.put("kernel", "a", b"1")
    assert main.main(["cache", "clear"]) == 0
    assert capsys.readouterr().out == "removed 1 entry\n"
    monkeypatch.setenv("FUSEC_CACHE", "0")
    assert main.main(["cache", "ls"]) == 0
    assert "off" in capsys.readouterr().out


def test_the_doctor_runs_a_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "gave NumPy's result" in said
    assert "Metal" in said


def test_the_doctor_reports_settings_that_mean_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FUSEC_CACHE", "maybe")
    assert main.main(["doctor"]) == 1
    said = capsys.readouterr().out
    assert "cache none: FUSEC_CACHE is 'maybe'" in " ".join(said.split())
    assert "Metal" in said


def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path) -> None:
    listing = [sys.executable, "-m", "fusec.cli.main", "explain"]
    reading, writing = os.pipe()
    os.close(reading)  # nobody reads: the first write fails
    with os.fdopen(writing, "wb") as pipe:
        run = subprocess.run(listing, stdout=pipe, stderr=subprocess.PIPE, cwd=tmp_path, check=False)
    assert (run.returncode, run.stderr) == (0, b"")


def test_errors_are_explained_without_heavy_libraries() -> None:
    program = (
        "import sys; from fusec.cli.main import main; main(['explain']); print({'lark', 'llvmlite'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.endswith("set()\n")


@pytest.mark.parametrize("made", ["@fusec.elementwise", "@fusec.fuse"])
def test_a_misspelt_dtype_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, made: str
) -> None:
    (tmp_path / "scaled_for_cli.py").write_text(f"import fusec\n{made}\ndef scaled(x):\n    return 2 * x\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "scaled_for_cli", raising=False)
    assert main.main(["compile", "scaled_for_cli:scaled", "--types", "x=flaot32"]) == 1
    assert "hint: did you mean 'float32'?" in capsys.readouterr().err
    assert main.main(["compile", "-e", "y = x", "-i", "T x", "-o", "T y", "--types", "T=flaot32"]) == 1
    assert "hint: did you mean 'float32'?" in capsys.readouterr().err


def test_shapes_are_those_of_all_arguments_or_of_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fused_for_cli.py").write_text("import fusec\n@fusec.fuse\ndef added(x, y):\n    return x.T + y\n")
    monkeypatch.chdir(tmp_path)
    asked = ["compile", "fused_for_cli:added", "--types", "x=float32,y=float64", "--shape"]
    assert main.main([*asked, "3x4,y=4x3"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("// added: 1 launch\n//   x: float32 (3, 4)\n//   y: float64 (4, 3)\n")
    for wrong in ("3y4", "x=", "z=3"):
        assert main.main([*asked, wrong]) in (1, 2)
    assert "--shape takes" in capsys.readouterr().err
    assert main.main([*asked, "3,4"]) == 2
    assert "--shape takes one shape for all arguments: write 3x4 for more axes" in capsys.readouterr().err


def test_numbers_that_a_fused_function_needs_have_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "    for _ in range(steps):\n        x = x * 2\n    return x\n"
    (tmp_path / "steps_for_cli.py").write_text(f"import fusec\n@fusec.fuse\ndef doubled(x, steps):\n{body}")
    (tmp_path / "steps_for_cli.py").open("a").write("def plain(x):\n    return x\n")
    monkeypatch.chdir(tmp_path)
    asked = ["compile", "steps_for_cli:doubled", "--types", "x=float32", "--target", "ir"]
    texts = []
    for steps in ("1", "3"):
        assert main.main([*asked, "--scalars", f"steps={steps}"]) == 0
        texts.append(capsys.readouterr().out)
    assert [text.count("float32(2.0)") for text in texts] == [1, 3]
    for more, told in (
        (["--scalars", "steps"], "--scalars NAME=VALUE a number"),
        (["--scalars", "steps=x"], "--scalars takes NAME or NAME=VALUE, a number as in steps=5, not 'steps=x'"),
        (["-o", "heat.cu"], "-o names the outputs of --expr; --out heat.cu writes a file"),
        (["--types", "float32"], "--types takes NAME=DTYPE, as in x=float32"),
    ):
        assert main.main([*asked, *more]) == 2
        assert told in capsys.readouterr().err
    assert main.main(["compile", "steps_for_cli:plain"]) == 2
    assert "not a kernel; decorate it with @fusec.fuse" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "code", "told"),
    [
        ("added --types x=float32", 1, "added() is missing the argument 'y' [F187]\nhint: --types y=float32 for an "),
        ("added --types x=float32,y=int8,z=int8", 1, "added() does not take the argument 'z' [F188]\nhint: its param"),
        ("item --types x=float32", 1, "item() is missing the argument 'table' [F187]"),
        ("several --types xs=float32", 1, "several() does not take the argument 'xs' [F188]\nhint: it names no param"),
        ("several", 2, "several() raised IndexError: tuple index out of range; --types and --shape describe"),
        ("Model.step --types x=float32", 1, "step() is missing the argument 'self' [F187]\nhint: take the method"),
        ("Model().step --types x=float32", 2, "mistaken_for_cli has no 'Model().step'"),
    ],
)
def test_a_fused_function_whose_arguments_the_options_do_not_describe(
    asked: str,
    code: int,
    told: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = """import fusec
@fusec.fuse
def added(x, y, n=3):
    return x + y * n
@fusec.fuse
def item(table, x):
    return table["a"] + x
@fusec.fuse
def several(*xs):
    return xs[0] + xs[1]
class Model:
    @fusec.fuse
    def step(self, x):
        return x + 1
model = Model()
"""
    (tmp_path / "mistaken_for_cli.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main.main(["compile", *f"mistaken_for_cli:{asked}".split()]) == code
    assert told in capsys.readouterr().err


def test_a_fused_method_of_an_object_of_a_module(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """import fusec
class Model:
    rate = 3.5
    @fusec.fuse
    def step(self, x):
        return x * self.rate
model = Model()
"""
    (tmp_path / "method_for_cli.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert main.main(["compile", "method_for_cli:model.step", "--types", "x=float32", "--shape", "300"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["// step: 1 launch", "//   x: float32 (300,)"]
    assert lines[2].startswith("//   1. step over 300 elements, 4 a thread: ")
