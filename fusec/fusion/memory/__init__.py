"""Where the arrays of a plan are: slots and views of them, calls of libraries on them, and results."""
