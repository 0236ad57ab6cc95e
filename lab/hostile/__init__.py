"""Hostile requests: golden ones, bent in ways that a seed decides, and a judge of what the host answers."""
