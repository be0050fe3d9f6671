"""Passes: one verb-named module each; the order is one flat tuple."""
