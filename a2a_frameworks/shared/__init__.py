"""Modules that several adapters use."""
