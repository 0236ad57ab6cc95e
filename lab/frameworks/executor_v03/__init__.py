"""Executors for a2a-sdk 0.3, unchanged."""
