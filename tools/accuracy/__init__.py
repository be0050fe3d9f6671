"""Measures how far the elementary functions are from the exact values: ``python -m tools.accuracy --help``."""
