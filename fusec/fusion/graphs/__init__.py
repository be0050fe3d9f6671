"""Traces as graphs of arrays, and what graphs have beside operations, as values of traces."""
