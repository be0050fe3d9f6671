"""What a fused function's run records: the trace, its values, and what stands for arrays meanwhile."""
