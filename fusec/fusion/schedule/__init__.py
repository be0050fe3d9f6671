"""From the statements of a trace to a plan: which kernels, in which order, and the plans of other extents."""
