"""Who may come, said aloud in the log when a process begins to serve."""

from __future__ import annotations

import logging

from a2a_tasks.agents.registry import agents
from a2a_tasks.agents.security import accepted, anonymous_allowed, listed

__all__ = ["say_who_may_come"]

logger = logging.getLogger(__name__)


async def say_who_may_come() -> None:
    """Say it."""
    named = ", ".join(accepted(None)) or "none"
    if anonymous_allowed():
        logger.warning(
            "ANYBODY may use the agents (A2A_ANONYMOUS); credentials that are read: %s", named
        )
    else:
        logger.info("callers need credentials: %s", named)
    if few := [agent.slug for agent in agents() if listed(agent)]:
        logger.info("agents for those they were granted to (manage.py grants): %s", ", ".join(few))
