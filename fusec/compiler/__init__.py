"""The stages from a definition to machine code, and the disk cache."""
