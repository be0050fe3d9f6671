"""Graphs of whole arrays: values with a dtype and extents that may be symbols, and the operations between them."""
