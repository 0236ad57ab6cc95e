"""What every binding reads off a request before the operation: version, dialect, extensions, caller, and so on."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.core.signals import setting_changed
from django.dispatch import receiver

from a2a_tasks.access.callers import identify
from a2a_tasks.agents import Agent
from a2a_tasks.agents.cards import url_of
from a2a_tasks.agents.host_extensions import declared
from a2a_tasks.agents.visibility import scope_of
from a2a_tasks.audit import request_named
from a2a_tasks.bindings.http import Headers, Request
from a2a_tasks.caller import Caller
from a2a_tasks.conf import conf
from a2a_tasks.operations.call import Call
from a2a_tasks.operations.origin import origin_of
from a2a_tasks.protocol.binding import Binding
from a2a_tasks.protocol.detection import Asked, task_named
from a2a_tasks.protocol.dialects import Dialect, Switches, dialects
from a2a_tasks.protocol.extensions import activate, requested
from a2a_tasks.protocol.mounts import MOUNTS, Mount
from a2a_tasks.protocol.sse import read_event_id
from a2a_tasks.protocol.versions import SUPPORTED, read_version
from a2a_tasks.signatures import ring

__all__ = ["Circumstances", "Detect", "Table", "Visit", "circumstances", "spoken", "switches"]

Table = Mapping[str, Callable[[Any, Any], Awaitable[Any]]]
#: `detection.by_call` or `by_route`.
Detect = Callable[[Mount, Asked, Switches], str | None]
VARY = (b"vary", b"A2A-Version, A2A-Extensions")
#: The names of the header with the extensions asked for.
EXTENSIONS = ("a2a-extensions", "x-a2a-extensions")


@functools.cache
def switches() -> Switches:
    """What the operator has turned."""
    return Switches(
        strict_version=conf.STRICT_VERSION,
        legacy_method_with_1_0=conf.LEGACY_METHOD_WITH_1_0 == "serve",
        v10_error_table=conf.V10_ERROR_TABLE,
        list_page_size_returns_count=conf.LIST_PAGE_SIZE_RETURNS_COUNT,
        draft_bare_results=conf.DRAFT_BARE_RESULTS,
        double_base64_v03=conf.DOUBLE_BASE64_V03,
        v01_reopen_terminal=conf.V01_REOPEN_TERMINAL,
    )


@functools.cache
def spoken(code: str) -> Dialect:
    """The dialect of that code, as the operator wants it."""
    return dialects(switches())[code]


@receiver(setting_changed)
def _forget(**_: Any) -> None:
    switches.cache_clear()
    spoken.cache_clear()


@dataclass(frozen=True, slots=True)
class Visit:
    """A request at an agent's door: who comes, and by which mount."""

    request: Request
    agent: Agent
    mount: Mount
    table: Table

    def version(self, admitted: Collection[str] | None = None) -> str:
        """The A2A-Version asked for. Raises VersionNotSupported for one that the mount does not admit."""
        if admitted is None:
            admitted = self.mount.admits if self.mount.dialect else SUPPORTED
        header, query = self.request.header("a2a-version"), self.request.query_value("A2A-Version")
        return read_version(header, query, admitted)

    async def caller(self) -> Caller:
        """Who comes. Raises Unauthenticated, InsufficientScope, RateLimited, Overloaded."""
        return await identify(self.request.credentials, self.agent)

    async def detect(self, by: Detect, asked: Asked, caller: Caller) -> Dialect:
        """The dialect spoken, with a look at the task where nothing else tells.

        Raises VersionNotSupported, MethodNotFound.
        """
        code = by(self.mount, asked, switches())
        if code is None:
            # No tenant: whoever names one speaks 1.0, and needs no look.
            origin = await origin_of(scope_of(self.agent, caller), task_named(asked.params))
            code = by(self.mount, replace(asked, origin=origin), switches())
        assert code is not None  # noqa: S101 - with an origin, every row decides
        return spoken(code)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """A negotiated request."""

    dialect: Dialect
    call: Call
    headers: Headers

    def shown(self, result: Any) -> Any:
        """A result as the dialect can write it: a card becomes its card, and is signed."""
        if not isinstance(result, Mapping):
            return result
        code, base_url = self.dialect.code, self.call.base_url
        card = self.dialect.card(result, url_of(self.call.agent, base_url, MOUNTS[code]))
        return ring.seal().on(card, code, base_url)


def circumstances(
    visit: Visit, dialect: Dialect, caller: Caller, binding: Binding
) -> Circumstances:
    """Extensions and everything else an operation is told. Raises ExtensionSupportRequired."""
    request, agent = visit.request, visit.agent
    required = agent.extensions if dialect.manners.enforces_extensions else ()
    active = activate(
        requested(request.header(name) for name in EXTENSIONS),
        [extension.uri for extension in declared(agent)],
        [extension.uri for extension in required if extension.required],
    )
    headers: Headers = [VARY]
    if dialect.version:
        headers.append((b"a2a-version", dialect.version.encode()))
    if active:
        headers += [(name, ", ".join(active).encode()) for name in _answered_by(request)]
    call = Call(
        agent=agent,
        caller=caller,
        dialect=dialect.code,
        binding=binding,
        extensions=tuple(active),
        last_event_id=read_event_id(request.header("last-event-id")),
        idempotency_key=request.headers.get("idempotency-key"),
        request_id=request_named(request.header("x-request-id")),
        base_url=request.base_url,
    )
    return Circumstances(dialect, call, headers)


def _answered_by(request: Request) -> list[bytes]:
    """The names of the header with the extensions in force: the one of today, and the older one if it was used."""
    return [b"a2a-extensions"] + (
        [b"x-a2a-extensions"] if request.header("x-a2a-extensions") else []
    )
