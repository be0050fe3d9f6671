"""The suite of the array API, where a checkout is at hand: FUSEC_ARRAY_API_TESTS=path."""

import os

import pytest

from tests.conformance.array_api import run_suite

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif("FUSEC_ARRAY_API_TESTS" not in os.environ, reason="FUSEC_ARRAY_API_TESTS names no checkout"),
]


@pytest.mark.parametrize("version", ["2024.12", "2025.12"])
def test_the_namespace_passes_the_suite_of_the_standard(version):
    assert run_suite.main("--version", version) == 0
