"""The cross-access matrix: every operation, on every wire, asked by everybody who may not have its object."""
