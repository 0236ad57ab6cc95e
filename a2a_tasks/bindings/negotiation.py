"""The negotiation of a request before its operation, for all bindings: version, dialect, extensions, caller, etc."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django.core.signals import setting_changed
from django.dispatch import receiver

from a2a_tasks.access.authentication import identify
from a2a_tasks.agents import Agent
from a2a_tasks.agents.cards import url_of
from a2a_tasks.agents.host_extensions import list_extensions
from a2a_tasks.agents.visibility import scope_of
from a2a_tasks.audit import request_id_of
from a2a_tasks.bindings.http import Headers, Request
from a2a_tasks.caller import Caller
from a2a_tasks.conf import conf
from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.operations.capabilities import require_capability
from a2a_tasks.operations.handler import OperationTable
from a2a_tasks.operations.origin import origin_of
from a2a_tasks.protocol.binding import Binding
from a2a_tasks.protocol.detection import DetectionInput, task_id_of
from a2a_tasks.protocol.dialects import CompatOptions, Dialect, dialects
from a2a_tasks.protocol.errors import MethodNotFound
from a2a_tasks.protocol.extensions import activate, parse_requested
from a2a_tasks.protocol.mounts import MOUNTS, Mount
from a2a_tasks.protocol.sse import read_event_id
from a2a_tasks.protocol.versions import SUPPORTED, read_version
from a2a_tasks.signatures import ring
from a2a_tasks.telemetry.log_context import LogContext, bind
from a2a_tasks.telemetry.observed_request import ObservedRequest

__all__ = [
    "NegotiatedRequest",
    "Detect",
    "RequestContext",
    "negotiate",
    "load_dialect",
    "switches",
]

#: `detection.by_call` or `by_route`.
Detect = Callable[[Mount, DetectionInput, CompatOptions], str | None]
VARY = (b"vary", b"A2A-Version, A2A-Extensions")
#: The names of the header with the requested extensions.
EXTENSIONS = ("a2a-extensions", "x-a2a-extensions")


@functools.cache
def switches() -> CompatOptions:
    """Return the compatibility options of the operator."""
    return CompatOptions(
        strict_version=conf.STRICT_VERSION,
        legacy_method_with_1_0=conf.LEGACY_METHOD_WITH_1_0 == "serve",
        v10_error_table=conf.V10_ERROR_TABLE,
        list_page_size_returns_count=conf.LIST_PAGE_SIZE_RETURNS_COUNT,
        draft_bare_results=conf.DRAFT_BARE_RESULTS,
        double_base64_v03=conf.DOUBLE_BASE64_V03,
        v01_reopen_terminal=conf.V01_REOPEN_TERMINAL,
    )


@functools.cache
def load_dialect(code: str) -> Dialect:
    """Return the dialect of that code, with the operator's options."""
    return dialects(switches())[code]


@receiver(setting_changed)
def _forget(**_: Any) -> None:
    switches.cache_clear()
    load_dialect.cache_clear()


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A request to an agent, and the mount at which it came."""

    request: Request
    agent: Agent
    mount: Mount
    table: OperationTable
    observed: ObservedRequest = field(default_factory=ObservedRequest)

    def version(self, admitted: Collection[str] | None = None) -> str:
        """Return the requested A2A-Version. Raises VersionNotSupported for one that the mount does not admit."""
        if admitted is None:
            admitted = self.mount.admits if self.mount.dialect else SUPPORTED
        header, query = self.request.header("a2a-version"), self.request.query_value("A2A-Version")
        return read_version(header, query, admitted)

    async def caller(self) -> Caller:
        """Return the caller. Raises Unauthenticated, InsufficientScope, RateLimited, Overloaded."""
        return await identify(self.request.credentials, self.agent)

    async def detect(self, by: Detect, detection: DetectionInput, caller: Caller) -> Dialect:
        """Return the dialect of the request, from its task if nothing else decides.

        Raises VersionNotSupported, MethodNotFound.
        """
        code = by(self.mount, detection, switches())
        if code is None:
            # Without a tenant: a client that names one uses 1.0, so its task is not needed.
            origin = await origin_of(scope_of(self.agent, caller), task_id_of(detection.params))
            code = by(self.mount, replace(detection, origin=origin), switches())
        assert code is not None  # noqa: S101 - with an origin, every row decides
        return load_dialect(code)


@dataclass(frozen=True, slots=True)
class NegotiatedRequest:
    """A request after negotiation: its dialect, the parameters of its call, and the headers of its answer."""

    dialect: Dialect
    call: CallContext
    headers: Headers

    def present(self, result: Any) -> Any:
        """Return a result as the dialect writes it: a card is converted to its form, and signed."""
        if not isinstance(result, Mapping):
            return result
        code, base_url = self.dialect.code, self.call.base_url
        card = self.dialect.card(result, url_of(self.call.agent, base_url, MOUNTS[code]))
        return ring.seal().on(card, code, base_url)


def negotiate(
    visit: RequestContext, dialect: Dialect, caller: Caller, binding: Binding, operation: str | None
) -> NegotiatedRequest:
    """Negotiate the extensions; return all other parameters of an operation.

    `operation` is its name in A2A 1.0, None for a method unknown to the dialect. Raises ExtensionSupportRequired,
    MethodNotFound, and the error of an operation whose capability the agent does not declare.
    """
    request, agent = visit.request, visit.agent
    visit.observed.note_negotiation(
        method=operation or "",
        dialect=dialect.code,
        agent=agent.slug,
        principal=caller.principal,
    )
    required = agent.extensions if dialect.features.enforces_extensions else ()
    active = activate(
        parse_requested(request.header(name) for name in EXTENSIONS),
        [extension.uri for extension in list_extensions(agent)],
        [extension.uri for extension in required if extension.required],
    )
    if operation is None:
        raise MethodNotFound
    require_capability(agent, visit.table[operation].operation.needs)
    headers: Headers = [VARY]
    if dialect.version:
        headers.append((b"a2a-version", dialect.version.encode()))
    if active:
        headers += [(name, ", ".join(active).encode()) for name in _list_header_names(request)]
    call = CallContext(
        agent=agent,
        caller=caller,
        dialect=dialect.code,
        binding=binding,
        extensions=tuple(active),
        last_event_id=read_event_id(request.header("last-event-id")),
        idempotency_key=request.headers.get("idempotency-key"),
        request_id=request_id_of(request.header("x-request-id")),
        base_url=request.base_url,
    )
    bind(LogContext(call.request_id, agent=agent.slug, tenant=caller.tenant))
    return NegotiatedRequest(dialect, call, headers)


def _list_header_names(request: Request) -> list[bytes]:
    """Return the names of the header with the active extensions: the current name, and the older one if it was used."""
    return [b"a2a-extensions"] + (
        [b"x-a2a-extensions"] if request.header("x-a2a-extensions") else []
    )
