"""The functions that are built in: reductions, cumulative functions, normalisations."""
