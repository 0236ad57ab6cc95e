"""The door for front ends that speak AG-UI 1.0."""

from a2a_doors.ag_ui.endpoint import serve

__all__ = ["serve"]
