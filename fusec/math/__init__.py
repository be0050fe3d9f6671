"""Elementary functions as IR: one definition for every target."""
