"""The interface to the operations that accept the calls of agents: execution does not know them.

They are registered when the app is loaded (`AppConfig.ready`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection

from a2a_tasks.agents.wanted_call import WantedCall
from a2a_tasks.store.records import ClaimedRun

__all__ = ["AgentCalls", "find", "register"]


class AgentCalls(ABC):
    """The calls of agents by runs of this process."""

    @abstractmethod
    async def begin(self, run: ClaimedRun, wanted: WantedCall) -> str | float:
        """Accept a call, once; return the result of its step, or the seconds after which to try again.

        Raises CallRefused, LeaseLost, Overloaded.
        """

    @abstractmethod
    async def follow(self, keys: Collection[int], asking: Collection[int], seconds: float) -> None:
        """Wait until all these tasks have ended, or ask if they are among those `asking`; at most so many seconds."""


_registered: list[AgentCalls] = []


def register(calls: AgentCalls) -> None:
    """Register the operations."""
    _registered[:] = [calls]


def find() -> AgentCalls:
    """Return the operations."""
    return _registered[0]
