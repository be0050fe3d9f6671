"""The command `fusec`."""
