"""What environment variables say: the table of them all, and what FUSEC_DEBUG shows."""
