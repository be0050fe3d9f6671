"""Run by test_stub_driver.py where libcuda is the stand-in: scans of device arrays, end to end."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import fusec
from fusec.base import dtypes
from fusec.runtime import cuda

pytestmark = pytest.mark.usefixtures("host_twins")
ADD = fusec.ScanKernel("T x", "T y", "x", "a + b", "y = a", 0, "add")


class Tensor:
    """What fusec asks of a PyTorch tensor, in memory of fusec's own."""

    requires_grad, is_cuda = False, True

    def __init__(self, own):
        self.own, self.shape = own, own.shape
        self.dtype = getattr(sys.modules["torch"], own.row.name)
        self.device = SimpleNamespace(type="cuda", index=own.device)
        self.exports = 0

    def stride(self):
        return tuple(step // self.own.row.nbytes for step in self.own.strides)

    def element_size(self):
        return self.own.row.nbytes

    def storage_offset(self):
        return (self.own.pointer - self.own.memory.pointer) // self.own.row.nbytes

    def as_strided(self, shape, steps, offset):
        assert all(step >= 0 for step in steps), "PyTorch has no negative strides"
        strides = tuple(step * self.own.row.nbytes for step in steps)
        start = self.own.memory.pointer - self.own.pointer
        return Tensor(self.own.seen_as(tuple(shape), strides, start + offset * self.own.row.nbytes))

    def data_ptr(self):
        return self.own.pointer

    def get_device(self):
        return self.own.device

    def is_neg(self):
        return False

    is_conj = is_neg

    def __dlpack_device__(self):
        return self.own.__dlpack_device__()

    def __dlpack__(self, **options):
        self.exports += 1
        return self.own.__dlpack__(**options)


@pytest.fixture
def tensor(monkeypatch):
    """Makes tensors of a library with PyTorch's name."""
    torch = ModuleType("torch")
    for name, row in dtypes.BY_NAME.items():
        setattr(torch, name, type("dtype", (), {"__repr__": lambda self, name=name: f"torch.{name}", "row": row})())

    def empty_strided(shape, steps, dtype, device):
        order = sorted(range(len(shape)), key=lambda axis: -steps[axis])
        return Tensor(cuda.empty(shape, dtype.row, order))

    torch.Tensor, torch.empty_strided = Tensor, empty_strided
    torch.device = lambda kind, index: SimpleNamespace(type=kind, index=index)
    torch.cuda = SimpleNamespace(current_stream=lambda device=None: SimpleNamespace(cuda_stream=0))
    torch._C = SimpleNamespace()
    monkeypatch.setattr(Tensor, "__module__", "torch")
    monkeypatch.setitem(sys.modules, "torch", torch)
    return lambda values: Tensor(cuda.from_numpy(values))


def test_repeated_calls_with_tensors_export_nothing_also_after_calls_with_other_arrays(tensor):
    x = np.random.default_rng(2).normal(size=3000).astype("f4")
    for function in (ADD, fusec.cumsum, fusec.sum):
        expected = np.asarray(function(x))
        assert function(cuda.from_numpy(x)).numpy().tobytes() == expected.tobytes()
        function(tensor(x))
        function(tensor(x), out=tensor(np.zeros_like(expected)))
        there, out = tensor(x), tensor(np.zeros_like(expected))
        assert function(there).own.numpy().tobytes() == expected.tobytes()
        assert function(there, out=out) is out
        assert out.own.numpy().tobytes() == expected.tobytes()
        assert (there.exports, out.exports) == (0, 0)


def test_device_arrays_are_scanned_in_one_kernel_or_three():
    x = np.random.default_rng(0).normal(size=20_000).astype("f4")
    for each, axis in ((x, 0), (x[:3000], 0), (x.reshape(400, 50), 0), (np.resize(x, (130, 2050)), 0)):
        assert ADD(cuda.from_numpy(each), axis=axis, stream=4096).numpy().tobytes() == ADD(each, axis=axis).tobytes()


def test_outputs_may_be_given_and_be_the_input():
    x = np.random.default_rng(1).normal(size=3000).astype("f4")
    there, out = cuda.from_numpy(x), cuda.from_numpy(np.zeros_like(x))
    assert ADD(there, out=out) is out
    assert ADD(there, out=there) is there
    for each in (out, there):
        assert each.numpy().tobytes() == ADD(x).tobytes()
