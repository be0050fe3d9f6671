/* Runs a simple CUDA kernel (no barriers, no shared memory) on the host, one thread after the other. */
#pragma once
#include <cstddef>
#include <cstring>
#include <utility>
#define __global__
#define __device__
#define __grid_constant__
#define __restrict__
struct Index3 { unsigned x, y, z; };
static thread_local Index3 gridDim, blockDim, blockIdx, threadIdx;

template <class... A, std::size_t... I>
static void call(void (*kernel)(A...), void **params, std::index_sequence<I...>) { kernel(*static_cast<A *>(params[I])...); }

template <class... A>
static void run_grid(void (*kernel)(A...), const unsigned *grid, const unsigned *block, void **params) {
  gridDim = {grid[0], grid[1], grid[2]};
  blockDim = {block[0], block[1], block[2]};
  const auto each = [](Index3 &at, const unsigned *of, auto work) {
    for (at.z = 0; at.z < of[2]; at.z++)
      for (at.y = 0; at.y < of[1]; at.y++)
        for (at.x = 0; at.x < of[0]; at.x++) work();
  };
  each(blockIdx, grid, [&] { each(threadIdx, block, [&] { call(kernel, params, std::index_sequence_for<A...>()); }); });
}
#define HOST_ENTRY(name) \
  extern "C" void name##__host(const unsigned *grid, const unsigned *block, unsigned, void **params) { run_grid(&name, grid, block, params); }
