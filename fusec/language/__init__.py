"""What only kernels can say, as Python has it."""
