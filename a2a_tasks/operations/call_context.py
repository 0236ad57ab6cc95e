"""The context of an operation besides its request: agent, caller, negotiated features."""

from __future__ import annotations

from dataclasses import dataclass

from a2a_tasks.agents import Agent
from a2a_tasks.agents.host_extensions import TOOL_EVENTS
from a2a_tasks.agents.visibility import scope_of
from a2a_tasks.caller import Caller, OwnerScope
from a2a_tasks.protocol.binding import Binding
from a2a_tasks.protocol.sse import EventId
from a2a_tasks.store.records import StoredQuestion

__all__ = ["CallContext"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CallContext:
    """The context of one request."""

    agent: Agent
    caller: Caller
    #: Code of the request's dialect, stored with the tasks it makes.
    dialect: str = "v10"
    #: The binding of the request, stored as well; None = none.
    binding: Binding | None = None
    #: URIs of the active extensions.
    extensions: tuple[str, ...] = ()
    #: `Last-Event-ID`: the client has seen the log up to here.
    last_event_id: EventId | None = None
    #: `Idempotency-Key`, as received; None = absent.
    idempotency_key: str | None = None
    #: The id that the client or the proxy gives the request (`X-Request-ID`), for the audit log.
    request_id: str = ""
    #: Base URL of the host as the client sees it, for cards.
    base_url: str = ""
    #: Set if an operator acts in the caller's place: the question that is answered.
    answers: StoredQuestion | None = None

    @property
    def shows_tools(self) -> bool:
        """True if streams of this request have the events of tools."""
        return TOOL_EVENTS.uri in self.extensions

    def scope(self, tenant: str) -> OwnerScope:
        """Return the scope of this caller's objects. Raises InvalidParams for a tenant that is too long."""
        return scope_of(self.agent, self.caller, tenant)
