"""The context of an operation besides its request: agent, caller, negotiated features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from a2a_tasks.agents import Agent
from a2a_tasks.agents.host_extensions import TOOL_EVENTS
from a2a_tasks.agents.security import is_shared
from a2a_tasks.caller import Caller, OwnerScope
from a2a_tasks.protocol.binding import Binding
from a2a_tasks.protocol.chats import ChatPlace
from a2a_tasks.protocol.sse import EventId
from a2a_tasks.store.delegations import CallTree
from a2a_tasks.store.file_links import make_linker
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
    #: The headers of the request by their names in lower case, with its credentials.
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
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
    #: The number of the event with the question that the message answers, or that a cancel gives up; 0 = any.
    question: int = 0
    #: Set if the client keeps the history of the conversation itself: the place of its message.
    chat: ChatPlace | None = None
    #: Set if an agent calls this one: the tasks that the new one descends from.
    tree: CallTree | None = None

    @property
    def shows_tools(self) -> bool:
        """True if streams of this request have the events of tools."""
        return TOOL_EVENTS.uri in self.extensions

    def scope(self, tenant: str) -> OwnerScope:
        """Return the scope of this caller's objects. Raises InvalidParams for a tenant that is too long."""
        return self.caller.scope(self.agent.slug, tenant, shared=is_shared(self.agent))

    def link(self, file: str) -> str:
        """Return the URL at which this caller downloads a file of the agent, by the id of the file."""
        return make_linker(self.agent.slug, self.base_url, self.caller.principal)(file)
