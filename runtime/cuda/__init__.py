"""The CUDA runtime: NVRTC to cubin, launch through cuda.core, foreign arrays in and out."""
