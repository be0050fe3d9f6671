"""Python functions as data: their source, their closures, and the values of their free names."""
