"""A class that one test replaces to see whether it is made."""


class FusedKernel:
    """Stands for what runs a fused function."""
