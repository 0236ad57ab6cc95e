"""In the caller's place: the same drawer, the same agent, for the caller and with the scopes of the message before."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from a2a_tasks.agents import registry
from a2a_tasks.audit import Action
from a2a_tasks.caller import Caller, Scope
from a2a_tasks.execution.turns import RunRequest, said_with
from a2a_tasks.operations.call import Call
from a2a_tasks.protocol.errors import AgentOff
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import Message, Part, Role
from a2a_tasks.store.records import Question
from a2a_tasks.store.waiting import Asked

__all__ = ["OnBehalf", "call_for", "request_for"]


@dataclass(frozen=True, kw_only=True, slots=True)
class OnBehalf(Call):
    """The circumstances of an answer that is not the caller's own: the caller is the task's, and so is the drawer."""

    drawer: Scope

    def scope(self, tenant: str) -> Scope:
        """The task's own drawer, wherever the host would put a new one today."""
        return self.drawer


def _said(found: Asked) -> RunRequest:
    """What the message before said beside it."""
    return said_with(found.request or "{}")


def call_for(found: Asked, action: Action, *, event: int | None = None) -> OnBehalf:
    """The circumstances of who answers the question, or the one of an earlier `event`. Raises AgentOff."""
    agent = registry.find(found.scope.agent)
    if agent is None:
        raise AgentOff(f"The agent {found.scope.agent} is switched off, or not hosted here")
    said = _said(found)
    seen = found.question.event if event is None else event
    return OnBehalf(
        agent=agent,
        caller=Caller(principal=said.principal, tenant=said.tenant, scopes=frozenset(said.scopes)),
        dialect=found.dialect,
        extensions=said.extensions,
        answers=Question(found.question.task, seen, action),
        drawer=found.scope,
    )


def request_for(
    found: Asked, parts: Sequence[Part], metadata: Mapping[str, Any]
) -> SendMessageRequest:
    """A message with these parts to the task."""
    message = Message(
        message_id=str(uuid.uuid4()),
        role=Role.USER,
        parts=tuple(parts),
        task_id=found.public_id,
        metadata=metadata,
    )
    modes = _said(found).accepted_output_modes
    return SendMessageRequest(message=message, accepted_output_modes=modes)
