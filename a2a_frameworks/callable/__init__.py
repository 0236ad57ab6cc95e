"""Functions, and objects with `astream`, `ainvoke` or `invoke`."""

from a2a_frameworks.callable.agent import CallableAgent

__all__ = ["CallableAgent"]
