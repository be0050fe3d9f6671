"""The part of cupy._core.fusion that the tests import."""

import fusec


def Fusion(function, name):
    """A fused function."""
    return fusec.fuse(function, name=name)
