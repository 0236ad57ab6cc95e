"""Agents and workers in the admin."""
