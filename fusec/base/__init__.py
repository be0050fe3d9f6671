"""What every part of fusec stands on: dtypes, operations, source places, records, locks."""
