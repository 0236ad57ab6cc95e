"""Adapters of frameworks, in a real host on each backend."""
