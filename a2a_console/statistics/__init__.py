"""The figures of the host."""
