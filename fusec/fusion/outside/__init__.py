"""What a traced function reads from outside: constants, attributes, and stand-ins for libraries."""
