"""Executors of the a2a-sdk, 1.x and 0.3."""

from a2a_frameworks.executor.agent import ExecutorAgent

__all__ = ["ExecutorAgent"]
