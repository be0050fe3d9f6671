"""CuPy's choice of libraries for reductions: there is nothing to choose."""


def get_routine_accelerators():
    """None, ever."""
    return []


def get_reduction_accelerators():
    """None, ever."""
    return []


def set_routine_accelerators(chosen):
    """Nothing to choose."""
    del chosen


def set_reduction_accelerators(chosen):
    """Nothing to choose."""
    del chosen
