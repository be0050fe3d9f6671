"""The CUDA runtime, end to end, against a stand-in for libcuda (stub_driver.c) in processes of its own."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import fibers
import pytest
import stub

HERE = Path(__file__).parent
GPU = HERE.parents[1] / "gpu"
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the stand-in is an ELF library"),
    pytest.mark.skipif(
        shutil.which("gcc") is None or shutil.which("g++") is None, reason="gcc and g++ build the stand-in"
    ),
    pytest.mark.skipif(importlib.util.find_spec("cuda") is None, reason="the extra fusec[cuda] is not installed"),
]


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    folder = tmp_path_factory.mktemp("driver")
    stub.build_driver(folder)
    shutil.copy(fibers.runtime(), folder)  # where the processes find it, instead of building it again
    return folder


def python(code: str, env: dict[str, str]) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)


def assert_passes(arguments: list[str], env: dict[str, str]) -> str:
    """Run pytest in a process of its own; what it printed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    return done.stdout


@pytest.mark.parametrize("cases", ["not slow", pytest.param("slow", marks=pytest.mark.slow)])
def test_the_runtime_works_end_to_end_on_the_stand_in(driver, cases):
    files = [str(HERE / name) for name in ("under_stub.py", "under_stub_blocks.py", "under_stub_reductions.py")]
    files += [str(HERE / "under_stub_scans.py"), str(HERE / "under_stub_fuse.py"), str(HERE / "under_stub_products.py")]
    files += [str(HERE / f"under_stub_{name}.py") for name in ("transforms", "linear", "calls", "atomics")]
    printed = assert_passes([*files, "-m", cases], stub.environment(driver, FUSEC_STUB_DEVICES="2"))
    assert "skipped" not in printed


# Each of the kinds left out has others of its kind among these, and takes seconds.
FEW = (
    "(beyond_a_chunk or repeated or layouts or block_size or device or streams or chain or several_outputs"
    " or (lazy and (mix or moves or refused or writes or libraries or made_where))"
    " or (choices and (views or beside or in_fused or histograms))"
    " or (scalars and 128) or atomics) and not on_several_streams and not repeated_scans"
    " and not axes_directions and not other_layouts and not (rows_beyond_a_chunk and (log_softmax or layer_norm))"
)


def test_device_tests_of_layouts_and_streams_pass_on_the_stand_in(driver):
    assert_passes([str(GPU), "-k", FEW], stub.environment(driver, FUSEC_STUB_DEVICES="2"))


@pytest.mark.slow
def test_all_device_tests_pass_on_the_stand_in(driver):
    assert_passes([str(GPU)], stub.environment(driver, FUSEC_STUB_DEVICES="2"))


@pytest.mark.slow
def test_programs_have_the_bits_of_the_cpu_on_the_stand_in(driver):
    assert_passes([str(HERE / "under_stub_programs.py")], stub.environment(driver, FUSEC_STUB_DEVICES="2"))


def test_without_a_device_the_error_says_so(driver):
    done = python("from fusec.runtime import cuda; cuda.device(0)", stub.environment(driver, FUSEC_STUB_DEVICES="0"))
    assert "no CUDA device 0: the driver reports 0 devices [F352]" in done.stderr


def test_without_a_driver_the_error_names_library_and_cure(driver):
    (driver / "empty").mkdir()
    (driver / "empty" / "libcuda.so.1").write_text("not a library")
    done = python("from fusec.runtime import cuda; cuda.device(0)", stub.environment(driver / "empty"))
    assert "no CUDA driver found: libcuda.so.1 could not be loaded [F351]" in done.stderr
    assert "hint: install the NVIDIA driver" in done.stderr


def test_importing_the_runtime_imports_no_nvidia_package(driver):
    code = "import sys, fusec.runtime.cuda; sys.exit(any(name.split('.')[0] == 'cuda' for name in sys.modules))"
    assert python(code, stub.environment(driver)).returncode == 0
