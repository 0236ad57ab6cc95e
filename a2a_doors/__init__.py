"""Doors for clients of other protocols: MCP, OpenAI's API, AG-UI, and the AI catalog for registries.

A door translates and decides nothing: it calls the operations of A2A for the same callers. The host imports a door with
its first request, if A2A_DOORS names it, and finds it by its entry point: `a2a_project/doors.py`.
"""
