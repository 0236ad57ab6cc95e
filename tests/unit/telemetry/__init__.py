"""Tests of what the host measures."""
