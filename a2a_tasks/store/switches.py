"""Switches of agents: written by operators, read by every process every few seconds (`access/switch_cache.py`)."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from a2a_tasks import pubsub
from a2a_tasks.agents import registry
from a2a_tasks.agents.switches import Switch
from a2a_tasks.audit import Action, actor
from a2a_tasks.models import AgentSwitch, AgentVersion, SwitchState
from a2a_tasks.store import audit
from a2a_tasks.store.announcements import find_fault

__all__ = [
    "SwitchState",
    "identify_choice",
    "read_switches",
    "limit",
    "move",
    "of",
    "refuse_unknown",
    "roll_back",
    "row_of",
    "serve",
    "set_canary",
    "set_state",
]

#: The highest limit, which has no effect any more.
MAX_COUNT = 1_000_000
#: A share of all, in percent.
WHOLE = 100
QUEUE = re.compile(r"[A-Za-z0-9._-]{1,64}")
#: The action of setting each state, in the audit log.
ACTIONS = {
    SwitchState.ON: Action.AGENT_ENABLE,
    SwitchState.DRAINING: Action.AGENT_DRAIN,
    SwitchState.OFF: Action.AGENT_DISABLE,
}


def read_switches(slugs: Collection[str] | None = None) -> dict[str, Switch]:
    """Return the switches that were set, of these agents or of all, by slug."""
    rows = AgentSwitch.objects.all()
    rows = rows if slugs is None else rows.filter(slug__in=list(slugs))
    return {row.slug: read_row(row) for row in rows}


def of(slug: str) -> Switch:
    """Return the switch of this agent from the database, not from this process's cache."""
    return read_row(row_of(slug))


def read_row(row: AgentSwitch) -> Switch:
    """Return the switch in a row."""
    return Switch(
        state=row.state,
        max_running=row.max_running,
        queue=row.queue,
        version=row.version,
        canary=row.canary,
        canary_percent=row.canary_percent,
    )


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
    """Send new runs of the agent to another queue. Empty: the queue that the class of the agent names. False if it is set already.

    Waiting runs stay in their queue. Raises ValueError for an invalid name.
    """
    if queue and not QUEUE.fullmatch(queue):
        raise ValueError(
            "A queue is named by 1 to 64 letters, digits, hyphens, dots and underscores"
        )
    return _change(slug, Action.AGENT_QUEUE, reason, queue=queue)


def serve(slug: str, version: str, reason: str = "") -> bool:
    """Let this version of the agent serve, and end its canary; empty = the host chooses. False if it is so already.

    Conversations stay with the version that they began with. Raises ValueError for a version that the host does not have.
    """
    refuse_unknown(slug, version)
    values = {"version": version, "canary": "", "canary_percent": 0.0}
    return _change(slug, Action.AGENT_VERSION, reason, **values)


def set_canary(slug: str, version: str, percent: float, reason: str = "") -> bool:
    """Give this version a share of the agent's new conversations, in percent; 0 ends it. False if it is so already.

    Raises ValueError for a version that the host does not have, and for a percentage that is not from 0 to 100.
    """
    if not 0 <= percent <= WHOLE:
        raise ValueError("A share is a number from 0 to 100, in percent")
    refuse_unknown(slug, version if percent else "")
    values = {"canary": version if percent else "", "canary_percent": float(percent)}
    return _change(slug, Action.AGENT_VERSION, reason, **values)


def roll_back(slug: str, reason: str = "", *, seen: str | None = None) -> bool:
    """End the agent's canary; without one, let the version serve that served before. False if there is neither.

    `seen`: the answer of `identify_choice` when the operator decided. Raises ValueError if it has changed since, so
    that a second click does not undo the first; and for a version before that was removed.
    """
    changed = _roll_back(slug, reason.strip(), seen)
    if changed:
        pubsub.publish(pubsub.OverridesChanged())
    return changed


@transaction.atomic
def _roll_back(slug: str, reason: str, seen: str | None) -> bool:
    row = AgentSwitch.objects.select_for_update().filter(slug=slug).first()
    if seen is not None and seen != identify_choice(row or AgentSwitch(slug=slug)):
        raise ValueError("The versions have changed since you opened the page: look at them again")
    if row is None or (not row.canary and row.version_before is None):
        return False
    values: dict[str, Any] = {"canary": "", "canary_percent": 0.0}
    if not row.canary:
        refuse_unknown(slug, str(row.version_before))
        values["version"] = row.version_before
    return _write(slug, Action.AGENT_VERSION, reason, values)


def identify_choice(row: AgentSwitch) -> str:
    """Return a text that changes with the version that serves, with the canary, and with the version before."""
    before = "" if row.version_before is None else f"/{row.version_before}"
    return f"{row.version}/{row.canary}{before}"


def refuse_unknown(slug: str, version: str) -> None:
    """Raise ValueError for a version that the host does not have or serve; empty = the host chooses."""
    own = registry.find_of_host(slug)
    announced = AgentVersion.objects.filter(slug=slug)
    if own is None and not announced.exists():
        raise ValueError(f"The host has no agent {slug[:80]!r}")
    if not version or (own is not None and own.version == version):
        return
    row = announced.filter(version=version).first()
    if row is None:
        raise ValueError(f"The host has no version {version[:50]!r} of the agent {slug}")
    if fault := find_fault(row):
        raise ValueError(f"Version {version} of the agent {slug} is not served: {fault}")


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
    if values.get("version", row.version) != row.version:
        values = {**values, "version_before": row.version}
    AgentSwitch.objects.filter(pk=row.pk).update(**values, **who)
    detail = {name: "" if value is None else str(value) for name, value in values.items()}
    about = {**detail, "reason": reason} if reason else detail
    audit.note(action, slug, detail=about)
    return True
