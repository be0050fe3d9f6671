"""The built-in functions: reductions, cumulative functions, normalisations."""
