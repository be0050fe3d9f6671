"""A plugin of pytest that adds fusec.xp to the libraries that xarray's tests of wrapped arrays run on."""

import pytest
import xarray.tests.test_duck_array_wrapping as wrapping

NAME = "fusec.xp"

wrapping.NAMESPACE_ARRAYS[NAME] = {"attrs": {"array": "Array", "constructor": "asarray"}, "xfails": {}}
wrapping.NAMESPACES.append(pytest.param(NAME))
