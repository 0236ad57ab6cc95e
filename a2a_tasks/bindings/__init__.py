"""The bindings: HTTP in, HTTP out. Each request becomes one call into the table of operations."""
