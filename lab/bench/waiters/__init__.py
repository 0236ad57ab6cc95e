"""Agents that only wait, hosted by the benchmark's worker (A2A_APPS)."""
