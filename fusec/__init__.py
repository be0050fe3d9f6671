"""fusec: an array compiler. One kernel text runs on the CPU and comes out as CUDA C and Metal."""
