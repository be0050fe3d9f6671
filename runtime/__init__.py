"""The runtimes of generated kernels: cpu (llvmlite JIT, threads, memory) and cuda (NVRTC, cuda.core)."""
