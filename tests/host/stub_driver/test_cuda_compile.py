"""What the CUDA runtime does without any driver: compile, size launches, encode arguments, miss packages."""

import sys

import handwritten
import numpy as np
import pytest

from fusec.base.kernel_abi import Kernel, Layout
from fusec.errors.targets import CudaCompileFailed, CudaExtraMissing, NoCudaDriver, NvrtcMissing
from fusec.runtime import cuda
from fusec.runtime.cuda import driver, launching, libraries, nvrtc

ARCHS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")


@pytest.fixture
def nvrtc_here():
    pytest.importorskip("cuda.bindings.nvrtc", reason="the extra fusec[cuda] is not installed")


# --- NVRTC ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("nvrtc_here")
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.sampled(3)
def test_every_kernel_becomes_a_cubin_for_every_architecture_without_spills(arch):
    for kernel in handwritten.ALL:
        module = cuda.compile(kernel, arch)
        assert module.image.code.startswith(b"\x7fELF")
        assert module.image.goal == nvrtc.Goal(arch, "cubin")
        assert " 0 bytes spill stores" in module.image.log
        assert kernel.name.encode() in module.image.code


@pytest.mark.usefixtures("nvrtc_here")
def test_multiply_and_add_are_not_contracted():
    text = 'extern "C" __global__ void k(float *z, float a, float b) { z[0] = a * b + z[0]; }'
    ptx = nvrtc.compile_text(text, "k", nvrtc.Goal("compute_90", "ptx")).code.decode()
    assert "fma" not in ptx
    assert "mul.rn.f32" in ptx
    assert ".ftz" not in ptx


@pytest.mark.usefixtures("nvrtc_here")
def test_division_and_square_root_round_correctly():
    text = 'extern "C" __global__ void k(float *z) { z[0] = sqrtf(z[1] / z[2]); }'
    ptx = nvrtc.compile_text(text, "k", nvrtc.Goal("compute_90", "ptx")).code.decode()
    assert "div.rn.f32" in ptx
    assert "sqrt.rn.f32" in ptx


@pytest.mark.usefixtures("nvrtc_here")
def test_devices_between_and_beyond_the_known_ones_get_code_that_runs_there():
    newest = nvrtc.supported()[-1]
    assert nvrtc.goal("sm_90a") == nvrtc.Goal("sm_90a", "cubin")
    assert nvrtc.goal("sm_81") == nvrtc.Goal("sm_80", "cubin")
    assert nvrtc.goal("sm_990") == nvrtc.Goal(f"compute_{newest}", "ptx")
    with pytest.raises(RuntimeError, match="generates no code for sm_35; it supports sm_"):
        nvrtc.goal("sm_35")
    with pytest.raises(ValueError, match="arch must look like 'sm_90', got 'ampere'"):
        nvrtc.goal("ampere")


@pytest.mark.usefixtures("nvrtc_here")
def test_a_text_that_nvrtc_refuses_is_a_bug_of_fusec_and_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    bad = Kernel("bad", "cuda", (), 'extern "C" __global__ void bad() { unknown(1); }', Layout(1))
    with pytest.raises(RuntimeError, match=r"NVRTC refused the text generated for kernel 'bad' \(sm_90\)") as caught:
        cuda.compile(bad, "sm_90")
    error = caught.value.error
    assert isinstance(error, CudaCompileFailed)
    assert 'bad.cu(1): error: identifier "unknown" is undefined' in str(caught.value)
    assert "this is a bug in fusec" in str(caught.value)
    (kept,) = tmp_path.iterdir()
    assert error.path == str(kept)
    assert kept.read_text() == bad.source


@pytest.mark.usefixtures("nvrtc_here")
def test_aligned_structs_load_sixteen_bytes_at_once():
    text = (
        "struct alignas(16) V { float v[4]; };\n"
        'extern "C" __global__ void k(const V *x, V *z) { V a = x[threadIdx.x];'
        " for (int l = 0; l < 4; l++) a.v[l] += 1; z[threadIdx.x] = a; }"
    )
    ptx = nvrtc.compile_text(text, "k", nvrtc.Goal("compute_90", "ptx")).code.decode()
    assert ptx.count("ld.global.v4") == ptx.count("st.global.v4") == 1


@pytest.mark.usefixtures("nvrtc_here")
def test_debug_levels_show_registers_and_then_ptx(monkeypatch, capsys):
    monkeypatch.setenv("FUSEC_DEBUG", "1")
    cuda.compile(handwritten.AXPY, "sm_90")
    assert not capsys.readouterr().err  # whoever keeps the code says how it came
    monkeypatch.setenv("FUSEC_DEBUG", "6")
    cuda.compile(handwritten.AXPY, "sm_90")
    shown = capsys.readouterr().err
    assert "registers" in shown
    assert ".visible .entry axpy(" in shown


# --- what is missing -----------------------------------------------------------------------------------------------


@pytest.fixture
def forgetful():
    """Forget what was imported and initialised, before and after."""
    cached = (libraries.driver_api, libraries.nvrtc_api, libraries.cuda_core, driver.initialise, driver.device)
    for function in cached:
        function.cache_clear()
    yield
    for function in cached:
        function.cache_clear()


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize(
    ("module", "function"),
    [
        ("cuda.bindings.driver", libraries.driver_api),
        ("cuda.bindings.nvrtc", libraries.nvrtc_api),
        ("cuda.core", libraries.cuda_core),
    ],
)
def test_a_missing_package_is_named_with_the_cure(module, function, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, "cuda.core.utils", None)
    with pytest.raises(RuntimeError, match=f"needs the package '{'-'.join(module.split('.')[:2])}'") as caught:
        function()
    assert isinstance(caught.value.error, CudaExtraMissing)
    assert "pip install 'fusec[cuda]'" in str(caught.value)


class Broken:
    """Bindings whose library cannot be loaded."""

    def nvrtcVersion(self):
        raise RuntimeError("libnvrtc.so.13 not found")

    def cuInit(self, flags):
        raise RuntimeError("cannot open libcuda")


@pytest.mark.usefixtures("forgetful")
def test_a_missing_nvrtc_is_an_error_with_the_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", Broken())
    with pytest.raises(RuntimeError, match="NVRTC, the run-time compiler of CUDA, could not be loaded") as caught:
        nvrtc.version()
    assert isinstance(caught.value.error, NvrtcMissing)


@pytest.mark.usefixtures("forgetful")
def test_a_missing_driver_is_an_error_with_the_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", Broken())
    with pytest.raises(RuntimeError, match="no CUDA driver found") as caught:
        driver.device(0)
    assert isinstance(caught.value.error, NoCudaDriver)


# --- geometry and arguments ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("lanes", [1, 4, 8])
@pytest.mark.parametrize("block", [1, 96, 1024])
@pytest.mark.parametrize("size", [1, 2, 1023, 10**6, 2**31, 2**45])
@pytest.mark.parametrize("wide", [False, True])
def test_grids_cover_the_elements_without_striding_where_positions_cannot_wrap(size, block, lanes, wide):
    kernel = Kernel("k", "cuda", (), "", Layout(1, wide=wide), lanes=lanes)
    grid = launching.grid_size(kernel, size, block)
    step = grid * block * lanes
    assert 1 <= grid <= launching.MAX_GRID
    assert step >= size or grid == launching.MAX_GRID or (not wide and step + block * lanes > 1 << 31)
    assert step - block * lanes < size  # no block without work
    assert wide or size >= 1 << 31 or size - 1 + step < 1 << 32  # the last position of a loop


@pytest.mark.parametrize("value", [0.1, 1e300, -np.inf, np.nan, 65520.0, 1e-46, 7])
def test_words_hold_the_bits_that_numpy_rounds_to(value):
    with np.errstate(over="ignore"):
        for slot in handwritten.SCALARS.slots[4:7]:
            word = launching._word(slot, value)
            assert (
                word.to_bytes(8, "little", signed=True)[: slot.dtype.nbytes]
                == np.array(value).astype(slot.dtype.numpy).tobytes()
            )


def test_addresses_in_the_upper_half_keep_their_bits():
    (word,) = launching.encode(
        Kernel("k", "cuda", (handwritten.pointer("x", handwritten.FLOAT32),), "", Layout(1)), [2**64 - 512]
    )
    assert word == -512


def test_a_wrong_number_of_slots_is_a_bug_not_a_user_error():
    with pytest.raises(AssertionError, match="axpy has 4 slots, not 1"):
        launching.encode(handwritten.AXPY, [1])
