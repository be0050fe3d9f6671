"""Code generators: one loops program in, one target text out."""
