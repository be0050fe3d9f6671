"""Random programs, deterministic in a seed, for every door of fusec; `python -m tests.fuzz --help` runs them."""
