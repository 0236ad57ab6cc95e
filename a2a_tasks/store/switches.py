"""Switches of agents: written by operators, read by every process every few seconds (`access/switch_cache.py`)."""

from __future__ import annotations

import re
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from a2a_tasks import pubsub
from a2a_tasks.agents.switches import Switch
from a2a_tasks.audit import Action, actor
from a2a_tasks.models import AgentSwitch, SwitchState
from a2a_tasks.store import audit

__all__ = ["SwitchState", "read_switches", "limit", "move", "of", "row_of", "set_state"]

#: The highest limit, which has no effect any more.
MAX_COUNT = 1_000_000
QUEUE = re.compile(r"[A-Za-z0-9._-]{1,64}")
#: The action of setting each state, in the audit log.
ACTIONS = {
    SwitchState.ON: Action.AGENT_ENABLE,
    SwitchState.DRAINING: Action.AGENT_DRAIN,
    SwitchState.OFF: Action.AGENT_DISABLE,
}


def read_switches() -> dict[str, Switch]:
    """Return the switch of each agent, by slug."""
    rows = AgentSwitch.objects.values_list("slug", "state", "max_running", "queue")
    return {slug: Switch(state, limit, queue) for slug, state, limit, queue in rows}


def of(slug: str) -> Switch:
    """Return the switch of this agent from the database, not from this process's cache."""
    row = row_of(slug)
    return Switch(row.state, row.max_running, row.queue)


def row_of(slug: str) -> AgentSwitch:
    """Return the agent's row; an unsaved row with default values if there is none."""
    return AgentSwitch.objects.filter(slug=slug).first() or AgentSwitch(slug=slug)


def set_state(slug: str, state: SwitchState, reason: str = "") -> bool:
    """Switch the agent on, off, or to draining. False if it has this state already."""
    return _change(slug, ACTIONS[state], reason, state=state)


def limit(slug: str, limit: int | None, reason: str = "") -> bool:
    """Set the maximum number of concurrent runs of the agent on the whole host; None = no limit.

    False if it is set already. Active runs beyond the limit continue. With 0 no run starts, and messages wait.
    Raises ValueError for a negative limit, and for one above MAX_COUNT.
    """
    if limit is not None and not 0 <= limit <= MAX_COUNT:
        raise ValueError(f"A limit is a number from 0 to {MAX_COUNT:,}")
    return _change(slug, Action.AGENT_LIMIT, reason, max_running=limit)


def move(slug: str, queue: str, reason: str = "") -> bool:
    """Send new runs of the agent to another queue; empty = the queue of its class. False if it is set already.

    Waiting runs stay in their queue. Raises ValueError for an invalid name.
    """
    if queue and not QUEUE.fullmatch(queue):
        raise ValueError(
            "A queue is named by 1 to 64 letters, digits, hyphens, dots and underscores"
        )
    return _change(slug, Action.AGENT_QUEUE, reason, queue=queue)


def _change(slug: str, action: Action, reason: str, **values: Any) -> bool:
    changed = _write(slug, action, reason.strip(), values)
    if changed:
        pubsub.publish(pubsub.OverridesChanged())
    return changed


@transaction.atomic
def _write(slug: str, action: Action, reason: str, values: dict[str, Any]) -> bool:
    who = {"by": actor(), "at": Now(), "reason": reason}
    row, _ = AgentSwitch.objects.select_for_update().get_or_create(slug=slug, defaults=who)
    if all(getattr(row, name) == value for name, value in values.items()):
        return False
    AgentSwitch.objects.filter(pk=row.pk).update(**values, **who)
    detail = {name: "" if value is None else str(value) for name, value in values.items()}
    about = {**detail, "reason": reason} if reason else detail
    audit.note(action, slug, detail=about)
    return True
