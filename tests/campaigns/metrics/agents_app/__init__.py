"""Agents of the campaign."""
