"""What every binding reads off a request before the operation: version, extensions, caller, resumption."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from a2a_tasks.agents import Agent
from a2a_tasks.bindings.http import Headers, Request
from a2a_tasks.caller import Caller
from a2a_tasks.conf import conf
from a2a_tasks.operations.call import Call
from a2a_tasks.protocol.dialects import Dialect
from a2a_tasks.protocol.negotiation import activate, choose, requested_extensions

__all__ = ["Circumstances", "Table", "circumstances"]

Table = Mapping[str, Callable[[Any, Any], Awaitable[Any]]]
_LONGEST_NUMBER = 9
VARY = (b"vary", b"A2A-Version, A2A-Extensions")


@dataclass(frozen=True, slots=True)
class Circumstances:
    """A negotiated request."""

    dialect: Dialect
    call: Call
    headers: Headers


def dialect_of(request: Request) -> Dialect:
    """The dialect asked for. Raises VersionNotSupported, before anything else is looked at."""
    return choose(
        request.header("a2a-version"),
        request.query_value("A2A-Version"),
        strict=bool(conf.STRICT_VERSION),
    )


def circumstances(
    request: Request, agent: Agent, dialect: Dialect, caller: Caller
) -> Circumstances:
    """Extensions and everything else an operation is told. Raises ExtensionSupportRequired."""
    asked = requested_extensions(
        [request.header("a2a-extensions"), request.header("x-a2a-extensions")]
    )
    active = activate(
        asked,
        [extension.uri for extension in agent.extensions],
        [extension.uri for extension in agent.extensions if extension.required],
    )
    headers: Headers = [(b"a2a-version", dialect.version.encode()), VARY]
    if active:
        headers.append((b"a2a-extensions", ", ".join(active).encode()))
    call = Call(
        agent=agent,
        caller=caller,
        dialect=dialect.code,
        extensions=tuple(active),
        last_event_id=_last_event_id(request.header("last-event-id")),
        base_url=request.base_url,
    )
    return Circumstances(dialect, call, headers)


def _last_event_id(text: str) -> int | None:
    """What is no number of ours is no resumption: the client then gets the whole task."""
    return int(text) if text.isdecimal() and len(text) <= _LONGEST_NUMBER else None
