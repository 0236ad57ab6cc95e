"""Formats of times on pages that Django writes by itself."""
