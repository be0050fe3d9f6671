"""The base of all other packages: dtypes, operations, places in sources, records, locks."""
