"""The log lines about the accepted callers, when a process begins to serve."""

from __future__ import annotations

import logging

from a2a_tasks.agents.registry import agents
from a2a_tasks.agents.security import allows_anonymous, is_listed, list_accepted

__all__ = ["say_who_may_come"]

logger = logging.getLogger(__name__)


async def say_who_may_come() -> None:
    """Log the accepted schemes, and the agents that need a grant."""
    named = ", ".join(list_accepted(None)) or "none"
    if allows_anonymous():
        logger.warning(
            "EVERYONE may use the agents (A2A_ANONYMOUS); credentials that are read: %s", named
        )
    else:
        logger.info("callers need credentials: %s", named)
    if few := [agent.slug for agent in agents() if is_listed(agent)]:
        logger.info("agents for those they were granted to (manage.py grants): %s", ", ".join(few))
