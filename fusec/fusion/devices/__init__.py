"""Plans on devices: memory there, launches, and repeated calls."""
