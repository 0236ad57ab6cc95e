"""Messages on behalf of the caller: same task and agent, with the caller and the scopes of the message before."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from a2a_console.queue.waiting import PendingQuestion
from a2a_tasks.agents import registry
from a2a_tasks.audit import Action
from a2a_tasks.caller import Caller, OwnerScope
from a2a_tasks.execution.turns import RunRequest, read_run_request
from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.protocol.errors import AgentOff
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import Message, Part, Role
from a2a_tasks.store.records import StoredQuestion

__all__ = ["OnBehalf", "call_for", "request_for"]


@dataclass(frozen=True, kw_only=True, slots=True)
class OnBehalf(CallContext):
    """The context of an answer on behalf of the caller: caller and owner scope are those of the task."""

    owner_scope: OwnerScope

    def scope(self, tenant: str) -> OwnerScope:
        """Return the owner scope of the task, even if a new task would get another one today."""
        return self.owner_scope


def _make_request(found: PendingQuestion) -> RunRequest:
    """Return the request data of the message before."""
    return read_run_request(found.request or "{}")


def call_for(found: PendingQuestion, action: Action, *, event: int | None = None) -> OnBehalf:
    """Return the context of an answer to the question, or to that of an earlier `event`. Raises AgentOff."""
    agent = registry.find(found.scope.agent)
    if agent is None:
        raise AgentOff(f"The agent {found.scope.agent} is switched off, or not hosted here")
    request = _make_request(found)
    seen = found.question.event if event is None else event
    return OnBehalf(
        agent=agent,
        caller=Caller(
            principal=request.principal, tenant=request.tenant, scopes=frozenset(request.scopes)
        ),
        dialect=found.dialect,
        extensions=request.extensions,
        headers=request.headers,
        answers=StoredQuestion(found.question.task, seen, action),
        owner_scope=found.scope,
    )


def request_for(
    found: PendingQuestion, parts: Sequence[Part], metadata: Mapping[str, Any]
) -> SendMessageRequest:
    """Return a message with these parts to the task."""
    message = Message(
        message_id=str(uuid.uuid4()),
        role=Role.USER,
        parts=tuple(parts),
        task_id=found.public_id,
        metadata=metadata,
    )
    modes = _make_request(found).accepted_output_modes
    return SendMessageRequest(message=message, accepted_output_modes=modes)
