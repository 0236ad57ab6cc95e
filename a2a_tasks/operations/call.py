"""What an operation is told beside its request: which agent, who asks, what was negotiated."""

from __future__ import annotations

from dataclasses import dataclass

from a2a_tasks.agents import Agent
from a2a_tasks.agents.visibility import scope_of
from a2a_tasks.caller import Caller, Scope
from a2a_tasks.protocol.binding import Binding
from a2a_tasks.protocol.catalogue import BY_NAME
from a2a_tasks.protocol.errors import PushNotificationNotSupported, UnsupportedOperation
from a2a_tasks.protocol.sse import EventId
from a2a_tasks.store.records import Question

__all__ = ["Call"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """The circumstances of one request."""

    agent: Agent
    caller: Caller
    #: Code of the dialect spoken, kept with the tasks it makes.
    dialect: str = "v10"
    #: The binding the request came by, kept as well; None = none.
    binding: Binding | None = None
    #: URIs of the extensions in force.
    extensions: tuple[str, ...] = ()
    #: `Last-Event-ID`: the client has seen the log up to here.
    last_event_id: EventId | None = None
    #: `Idempotency-Key`, as it came; None = there is none.
    idempotency_key: str | None = None
    #: What the client or the proxy calls the request (`X-Request-ID`), for the audit log.
    request_id: str = ""
    #: Base URL of the host as the client sees it, for cards.
    base_url: str = ""
    #: Set if somebody acts in the caller's place: the question that is answered.
    answers: Question | None = None

    def permit(self, operation: str) -> None:
        """Raise what A2A 1.0 §3.3.4 names if the agent's card does not declare what the operation needs."""
        needs = BY_NAME[operation].needs
        if needs == "streaming" and not self.agent.streaming:
            raise UnsupportedOperation("The agent does not stream")
        if needs == "push_notifications" and not self.agent.push_notifications:
            raise PushNotificationNotSupported

    def scope(self, tenant: str) -> Scope:
        """The drawer this caller's objects lie in. Raises InvalidParams for a tenant that is too long."""
        return scope_of(self.agent, self.caller, tenant)
