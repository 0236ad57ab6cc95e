"""From an assignment to the turn an agent sees, and the request's small print that travels with a run."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import msgspec

from a2a_tasks.agents import registry
from a2a_tasks.agents.files import Files
from a2a_tasks.agents.secrets import Secrets
from a2a_tasks.agents.steps import Journal
from a2a_tasks.agents.turn import Later, Turn
from a2a_tasks.agents.visibility import shared
from a2a_tasks.caller import Caller, Scope, scope_in
from a2a_tasks.protocol.jsontext import write
from a2a_tasks.protocol.requests import SendMessageRequest
from a2a_tasks.protocol.values import UNSET, Message, Task
from a2a_tasks.store.hop import hop, until_answered
from a2a_tasks.store.records import Assignment
from a2a_tasks.store.tasks import find, references

__all__ = ["RunRequest", "run_request", "said_with", "turn_of"]

_message = msgspec.json.Decoder(Message).decode


class RunRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a request said beside its message, as stored with the run."""

    accepted_output_modes: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    extensions: tuple[str, ...] = ()
    principal: str = ""
    tenant: str = ""
    scopes: tuple[str, ...] = ()
    #: Given by an operator for the caller.
    by_operator: bool = False


said_with = msgspec.json.Decoder(RunRequest).decode


def run_request(
    request: SendMessageRequest,
    caller: Caller,
    extensions: tuple[str, ...],
    *,
    by_operator: bool = False,
) -> str:
    """The small print of a request, as JSON for the run's row."""
    return write(
        RunRequest(
            accepted_output_modes=request.accepted_output_modes,
            metadata=dict(request.metadata or {}),
            extensions=extensions,
            principal=caller.principal,
            tenant=caller.tenant,
            scopes=tuple(sorted(caller.scopes)),
            by_operator=by_operator,
        )
    ).decode()


def _reach(run: Assignment, said: RunRequest) -> Scope:
    """What the sender of the message may see at this moment, in the drawer of the task."""
    agent = registry.hosted(run.scope.agent)
    shares = agent is not None and shared(agent)
    return scope_in(run.scope.tenant, said.principal, run.scope.agent, shared=shares)


def turn_of(
    run: Assignment, journal: Journal, files: Files | None = None, secrets: Secrets | None = None
) -> Turn:
    """The turn of a run; history and references are read when the agent asks."""
    said = said_with(run.request or "{}")
    message = _message(run.input)
    loop = asyncio.get_running_loop()

    async def history() -> list[Message]:
        found = await until_answered(
            functools.partial(hop, find, run.scope, run.task_id), repeatable=True
        )
        stored = [] if found is None or found.view.history is UNSET else found.view.history
        return [_message(text) for text in stored] or [message]

    async def refers_to() -> list[Task]:
        asked = functools.partial(hop, references, _reach(run, said), message.reference_task_ids)
        return await until_answered(asked, repeatable=True)

    return Turn(
        message=message,
        task_id=run.task_id,
        context_id=run.context_id,
        caller=Caller(principal=said.principal, tenant=said.tenant, scopes=frozenset(said.scopes)),
        history=Later(history, loop),
        references=Later(refers_to, loop),
        memory=msgspec.json.decode(run.memory) if run.memory else {},
        attempt=run.attempt,
        accepted_output_modes=said.accepted_output_modes,
        metadata=said.metadata,
        extensions=said.extensions,
        by_operator=said.by_operator,
        journal=journal,
        files=files,
        secrets=secrets,
    )
