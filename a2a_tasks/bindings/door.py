"""The door of all bindings: caller, version, dialect, extensions and call context of a request, before its operation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from a2a_tasks.access.authentication import identify
from a2a_tasks.agents import Agent
from a2a_tasks.agents.cards import url_of
from a2a_tasks.agents.host_extensions import list_extensions
from a2a_tasks.agents.security import is_shared
from a2a_tasks.audit import request_id_of
from a2a_tasks.bindings.http import Headers, Request
from a2a_tasks.caller import Caller
from a2a_tasks.conf import conf, of_settings
from a2a_tasks.operations.call_context import CallContext
from a2a_tasks.operations.capabilities import require_capability
from a2a_tasks.operations.handler import OperationTable
from a2a_tasks.operations.reads import origin_of
from a2a_tasks.protocol.binding import Binding
from a2a_tasks.protocol.detection import DetectionInput, task_id_of
from a2a_tasks.protocol.dialects import CompatOptions, Dialect, dialects
from a2a_tasks.protocol.errors import MethodNotFound
from a2a_tasks.protocol.extensions import activate, parse_requested
from a2a_tasks.protocol.mounts import MOUNTS, Mount
from a2a_tasks.protocol.sse import read_event_id
from a2a_tasks.protocol.versions import SUPPORTED, read_version
from a2a_tasks.signatures import ring
from a2a_tasks.telemetry import log_context
from a2a_tasks.telemetry.log_context import LogContext
from a2a_tasks.telemetry.observed_request import ObservedRequest

__all__ = ["Detect", "RequestContext", "load_dialect", "present", "switches"]

#: `detection.by_call` or `by_route`.
Detect = Callable[[Mount, DetectionInput, CompatOptions], str | None]
VARY = (b"vary", b"A2A-Version, A2A-Extensions")
#: The names of the header with the requested extensions.
EXTENSIONS = ("a2a-extensions", "x-a2a-extensions")


@of_settings
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


@of_settings
@functools.cache
def load_dialect(code: str) -> Dialect:
    """Return the dialect of that code, with the operator's options."""
    return dialects(switches())[code]


@dataclass(slots=True)
class RequestContext:
    """A request to an agent, and what the door finds out about it. `enter` sets the last three fields."""

    request: Request
    agent: Agent
    #: The mount at which the request came.
    mount: Mount
    table: OperationTable
    observed: ObservedRequest = field(default_factory=ObservedRequest)
    dialect: Dialect = field(init=False)
    #: The context of the operation.
    call: CallContext = field(init=False)
    #: The headers of the answer.
    headers: Headers = field(init=False)

    async def identify(self) -> Caller:
        """Return the caller. Raises Unauthenticated, InsufficientScope, RateLimited, Overloaded."""
        return await identify(self.request.credentials, self.agent)

    def version(self, admitted: Collection[str] | None = None) -> str:
        """Return the requested A2A-Version. Raises VersionNotSupported for one that the mount does not admit."""
        if admitted is None:
            admitted = self.mount.admits if self.mount.dialect else SUPPORTED
        header = self.request.headers.get("a2a-version", "")
        if header in admitted and not self.request.scope["query_string"]:  # nearly every request
            return header
        return read_version(header, self.request.query_value("A2A-Version"), admitted)

    async def detect(self, by: Detect, detection: DetectionInput, caller: Caller) -> Dialect:
        """Return the dialect of the request, from its task if nothing else decides.

        Raises VersionNotSupported, MethodNotFound.
        """
        code = by(self.mount, detection, switches())
        if code is None:
            # Without a tenant: a client that names one uses 1.0, so its task is not needed.
            scope = caller.scope(self.agent.slug, shared=is_shared(self.agent))
            origin = await origin_of(scope, task_id_of(detection.params))
            code = by(self.mount, replace(detection, origin=origin), switches())
        assert code is not None  # noqa: S101 - with an origin, every row decides
        return load_dialect(code)

    def enter(
        self, dialect: Dialect, caller: Caller, binding: Binding, operation: str | None
    ) -> CallContext:
        """Negotiate the extensions, and return the call context of the operation.

        `operation` is its name in A2A 1.0, None for a method unknown to the dialect. Raises ExtensionSupportRequired,
        MethodNotFound, and the error of an operation whose capability the agent does not declare.
        """
        self.dialect = dialect
        request, agent, header = self.request, self.agent, self.request.headers.get
        self.observed.note_negotiation(
            method=operation or "",
            dialect=dialect.code,
            agent=agent.slug,
            principal=caller.principal,
        )
        active = self._activate_extensions()
        if operation is None:
            raise MethodNotFound
        if capability := self.table[operation].operation.needs:
            require_capability(agent, capability)
        self.headers = _make_headers(dialect, active, request)
        self.call = CallContext(
            agent=agent,
            caller=caller,
            dialect=dialect.code,
            binding=binding,
            extensions=tuple(active),
            headers=request.headers,
            last_event_id=read_event_id(seen) if (seen := header("last-event-id")) else None,
            idempotency_key=header("idempotency-key"),
            request_id=request_id_of(named) if (named := header("x-request-id")) else "",
            base_url=request.base_url,
        )
        log_context.current.set(
            LogContext(self.call.request_id, agent=agent.slug, tenant=caller.tenant)
        )
        return self.call

    def _activate_extensions(self) -> Sequence[str]:
        """Return the URIs of the active extensions. Raises ExtensionSupportRequired."""
        requested = [*filter(None, map(self.request.headers.get, EXTENSIONS))]
        required = self.agent.extensions if self.dialect.features.enforces_extensions else ()
        if not requested and not required:
            return ()
        return activate(
            parse_requested(requested),
            [extension.uri for extension in list_extensions(self.agent)],
            [extension.uri for extension in required if extension.required],
        )


def _make_headers(dialect: Dialect, active: Sequence[str], request: Request) -> Headers:
    """Return the headers of an answer; the active extensions also under the older name, if the client used that."""
    headers: Headers = [VARY]
    if dialect.version:
        headers.append((b"a2a-version", dialect.version.encode()))
    if active:
        names = [name for name in EXTENSIONS if name == EXTENSIONS[0] or request.headers.get(name)]
        headers += [(name.encode(), ", ".join(active).encode()) for name in names]
    return headers


def present(result: Any, dialect: Dialect, call: CallContext) -> Any:
    """Return a result as the dialect writes it: a card is converted to its form, and signed."""
    if not isinstance(result, Mapping):
        return result
    card = dialect.card(result, url_of(call.agent, call.base_url, MOUNTS[dialect.code]))
    return ring.seal().on(card, dialect.code, call.base_url)
