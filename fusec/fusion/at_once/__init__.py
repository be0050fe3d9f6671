"""NumPy's functions on devices whose results depend on values in shape or dtype: they are computed at once."""
