"""Handover of secrets by a one-time link."""
