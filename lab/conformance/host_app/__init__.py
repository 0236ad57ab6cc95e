"""Agents that only conformance kits need."""
