"""Python functions as data: their source, their closures, and what their free names stand for."""
