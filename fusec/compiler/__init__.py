"""The stages from a definition to machine code, and the cache on disk."""
