"""Repeated calls of fused functions within CUDA graphs: these libraries capture what runs on a stream of theirs."""

import numpy as np
import pytest

import fusec
from fusec.runtime import cuda

pytestmark = pytest.mark.hardware
WARM = 3  # calls before all of a call is known
STREAMS = []  # which live as long as arrays that were used on them


def several(x, y, out):
    """Kernels with memory between them, a reduction of several steps, and results that are new and given."""
    power = np.exp(x - x.max())
    share = power / power.sum()
    out[...] = share + y
    return share.sum(axis=0), out[1:], out.mean()


def arrays(turn):
    rng = np.random.default_rng(turn)
    return rng.random((60, 1000)), rng.random((60, 1000))


def same(found, x, y):
    wanted = fusec.fuse(several)(x, y, np.empty_like(x))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_graphs_of_pytorch():
    torch = pytest.importorskip("torch")
    fused, (x, y) = fusec.fuse(several), (torch.from_numpy(each).cuda() for each in arrays(0))
    out, side = torch.empty_like(x), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM):
            fused(x, y, out)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = fused(x, y, out)
    for turn in range(1, 4):
        for array, values in zip((x, y), arrays(turn), strict=True):
            array.copy_(torch.from_numpy(values))
        graph.replay()
        fused(x + 1, y, torch.empty_like(x))  # has memory of its own between its kernels
        torch.cuda.synchronize()
        same([each.cpu().numpy() for each in found], *arrays(turn))


def test_graphs_of_scans_in_one_pass():
    """Their words are cleared whenever the graph runs."""
    torch = pytest.importorskip("torch")
    given = [np.random.default_rng(turn).random(300_001, "f4") for turn in range(4)]
    x, side, graph = torch.from_numpy(given[0]).cuda(), torch.cuda.Stream(), torch.cuda.CUDAGraph()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARM):
            fusec.cumsum(x)
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph):
        found = fusec.cumsum(x)
    for each in given:
        x.copy_(torch.from_numpy(each))
        for _ in range(3):
            graph.replay()
        torch.cuda.synchronize()
        np.testing.assert_array_equal(found.cpu().numpy(), fusec.cumsum(each))


def test_graphs_of_cupy():
    cupy = pytest.importorskip("cupy")
    fused, (x, y) = fusec.fuse(several), map(cupy.asarray, arrays(0))
    out, stream = cupy.empty_like(x), cupy.cuda.Stream(non_blocking=True)
    STREAMS.append(stream)
    cupy.cuda.Device().synchronize()
    with stream:
        for _ in range(WARM):
            kept = fused(x, y, out)
        stream.begin_capture()
        found = fused(x, y, out)
        graph = stream.end_capture()
        for turn in range(1, 4):
            for array, values in zip((x, y), arrays(turn), strict=True):
                array.set(values)
            graph.launch(stream)
            stream.synchronize()
            same([each.get() for each in found], *arrays(turn))
    del kept


def test_graphs_of_calls_on_a_stream():
    cupy = pytest.importorskip("cupy")

    def function(x, y, out):
        several(x, y, out)

    fused, (x, y) = fusec.fuse(function), map(cuda.from_numpy, arrays(0))
    out, stream = cuda.from_numpy(np.zeros((60, 1000))), cupy.cuda.Stream(non_blocking=True)
    STREAMS.append(stream)
    with stream:
        for _ in range(WARM):
            fused(x, y, out, stream=stream)
        stream.begin_capture()
        fused(x, y, out, stream=stream)
        graph = stream.end_capture()
        for turn in range(1, 4):
            for array, values in zip((x, y), arrays(turn), strict=True):
                cuda.lent_to_cupy(cuda.describe(array)).set(values)
            graph.launch(stream)
            stream.synchronize()
            wanted = np.empty((60, 1000))
            fusec.fuse(several)(*arrays(turn), wanted)
            np.testing.assert_array_equal(out.numpy(), wanted)
