"""Tasks that wait for a person: assignment, and answers on behalf of the caller."""
