"""Adapters of frameworks, without a host."""
