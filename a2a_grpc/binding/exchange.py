"""One rpc and its answer, by a single call of an operation as in the other bindings."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from a2a_grpc.binding.call import CallEnded, GrpcCall
from a2a_grpc.binding.call_request import call_request
from a2a_grpc.binding.errors import refusal
from a2a_grpc.binding.messages import form
from a2a_grpc.binding.rpcs import Rpc
from a2a_grpc.binding.schema import message_class
from a2a_tasks import process_lifetime
from a2a_tasks.access.authentication import find_agent
from a2a_tasks.agents import Agent
from a2a_tasks.agents.host_extensions import RESUMABLE_STREAMS
from a2a_tasks.bindings.door import RequestContext, present
from a2a_tasks.bindings.errors import to_a2a_error
from a2a_tasks.conf import conf
from a2a_tasks.operations.handler import OperationTable
from a2a_tasks.protocol.binding import Binding
from a2a_tasks.protocol.dialects import Dialect
from a2a_tasks.protocol.errors import A2AError, MethodNotFound, Overloaded, ParseError
from a2a_tasks.protocol.lifecycle import LogEvent
from a2a_tasks.protocol.mounts import MOUNTS
from a2a_tasks.protocol.requests import Request
from a2a_tasks.streaming.stream import EventStream
from a2a_tasks.telemetry.observed_request import ObservedRequest

__all__ = ["AGENT", "Exchange"]

#: The metadata key that names an agent by its slug.
AGENT = "a2a-agent"
#: In a subscription's metadata, the last event seen; in a stream's trailing metadata, the last event sent.
#: gRPC has no place for the numbers of events outside a message: see docs/clients.md.
EVENT_ID = "last-event-id"
#: Headers of the other bindings that are sent as initial metadata.
SENT = {b"a2a-extensions", b"x-a2a-extensions"}
#: Maximum number of events that are encoded before the first of them is sent.
TOGETHER = 64


class Exchange:
    """One call; the state reached so far decides the form of an error."""

    def __init__(self, table: OperationTable, rpc: Rpc, call: GrpcCall) -> None:
        self.table, self.rpc, self.call = table, rpc, call
        #: The message of the client, until it is parsed, and then until it is decoded: a stream may last for hours.
        self.body = b""
        self._message: Any = None
        self.request = call_request(call)
        self.agent: Agent | None = None
        #: Trailing metadata for the end of the call, successful or not.
        self.trailers: list[tuple[str, str | bytes]] = []
        self.dialect = rpc.dialect("")
        self.observed = ObservedRequest()

    async def answer(self) -> None:
        """Answer `body`: send the answer, or the stream until its end, the client's leave or deadline, or the drain.

        Raises CallEnded when the client reads too slowly.
        """
        with self.observed.by(Binding.GRPC, self.request.headers):
            try:
                await (self._stream() if self.rpc.streams else self._unary())
            except CallEnded:
                raise
            except Exception as raised:  # noqa: BLE001 - after any failure the client gets an answer
                self.refuse(to_a2a_error(raised))
            else:
                self.call.end(metadata=self.trailers)

    async def _stream(self) -> None:
        events, visit = await self._execute()
        self.observed.streams(events)
        relay = _Relay(self.call, events, visit, self.rpc.package)
        try:
            await relay.to_the_end()
        finally:
            self.trailers.append((EVENT_ID, relay.last_event_id))

    async def _unary(self) -> None:
        await self.call.write(await self._make_answer())

    async def _make_answer(self) -> bytes:
        """Return the encoded answer, and keep nothing else: the result is as large, and the client may read slowly."""
        result, visit = await self._execute()
        self.call.begin(_make_metadata(visit))
        if result is None:
            return b""
        shown = present(result, visit.dialect, visit.call)
        return self.rpc.write(visit.dialect.answer(self.rpc.operation, shown))

    async def _execute(self) -> tuple[Any, RequestContext]:
        """Execute the operation and return its result."""
        visit = await self._enter()
        operation = self.table[self._operation(visit.agent)]
        return await operation(self._decode(visit), visit.call), visit

    def _decode(self, visit: RequestContext) -> Request:
        message, self._message = self._message, None
        return visit.dialect.decode(self.rpc.operation, self.rpc.read(message))

    async def _enter(self) -> RequestContext:
        """Do everything that precedes the operation; the caller is identified first."""
        message = self._message = self.rpc.parse(self.body)
        self.body = b""
        agent = self.agent = await self._agent(message)
        visit = RequestContext(self.request, agent, MOUNTS[self.dialect], self.table, self.observed)
        caller = await visit.identify()
        self.dialect = self.rpc.dialect(visit.version(self.rpc.admitted))
        dialect = form(self.dialect)
        if message is None:
            raise ParseError("The message cannot be read")
        visit.enter(dialect, caller, Binding.GRPC, self._operation(agent))
        return visit

    async def _agent(self, message: Any) -> Agent:
        """Return the agent named by the metadata, or by the first segment of the tenant, or else the default one.

        A segment that names an agent is removed from the tenant. Raises MethodNotFound, WrongCredentials, Overloaded.
        """
        if named := self.request.header(AGENT):
            return await self._find_agent(named)
        segment, _, rest = str(getattr(message, "tenant", "")).partition("/")
        found = await find_agent(self.request.credentials, segment) if segment else None
        if found is None:
            return await self._find_agent(str(conf.DEFAULT_AGENT))
        message.tenant = rest
        return found

    async def _find_agent(self, slug: str) -> Agent:
        found = await find_agent(self.request.credentials, slug)
        if found is None:
            raise MethodNotFound("There is no such agent")
        return found

    def _operation(self, agent: Agent) -> str:
        """Return the operation. In 0.3 one rpc returns either card: the extended one, if the agent has it."""
        if self.rpc.name == "GetAgentCard" and agent.has_extended_card:
            return "GetExtendedAgentCard"
        return self.rpc.operation

    def refuse(self, fault: A2AError) -> None:
        """End the call with an error."""
        self.observed.note_fault(fault)
        refused = refusal(fault, form(self.dialect), self.agent)
        trailers = (*self.trailers, *refused.trailers)
        self.call.end(refused.code, refused.message, trailers, refused.details)


def _make_metadata(visit: RequestContext) -> Sequence[tuple[str, str]]:
    return [(name.decode(), value.decode()) for name, value in visit.headers if name in SENT]


class _Relay:
    """The relay of a stream's items to one client."""

    def __init__(
        self, call: GrpcCall, events: EventStream, visit: RequestContext, package: str
    ) -> None:
        self.call, self.events, self.visit, self.package = call, events, visit, package
        self.dialect: Dialect = visit.dialect
        self.numbers = RESUMABLE_STREAMS.uri in visit.call.extensions
        self.last = events.number

    @property
    def last_event_id(self) -> str:
        """The id of the last event sent."""
        return self._event_id(self.last)

    def _event_id(self, number: int) -> str:
        """Return an event id in the form of the `id:` line of a server-sent event."""
        mark = self.events.subject.mark
        return f"{number}-{mark}" if mark else str(number)

    async def to_the_end(self) -> None:
        """Send the whole stream. Raises Overloaded when the process drains first."""
        loop = asyncio.get_running_loop()
        try:
            await self._begin()
            rest = asyncio.create_task(self._send_rest())
            forget = process_lifetime.on_drain(lambda: loop.call_soon_threadsafe(rest.cancel))
            try:
                await asyncio.wait({rest})
            finally:
                forget()
                rest.cancel()
                await asyncio.wait({rest})  # the log is closed only after the last read
        finally:
            await self.events.close()
        if rest.cancelled():
            raise Overloaded("This process stops and the task goes on: subscribe again")
        rest.result()

    async def _begin(self) -> None:
        """Send the initial metadata at once, also to a client that resumes and has no new events yet."""
        gap = self.events.removed
        notice = [("a2a-events-removed-before", str(gap))] if gap else []
        self.call.begin([*_make_metadata(self.visit), *notice])
        await self._send_first()

    async def _send_first(self) -> None:
        self.last = self.events.number
        number = self.events.number
        begun = self.events.encode_start(self.dialect)
        await self.call.write(*(self._item(item, number) for item in begun))

    async def _send_rest(self) -> None:
        async for events in self.events.batches(None):  # HTTP/2 has pings
            if events is None:
                await self._send_first()
                continue
            for at in range(0, len(events), TOGETHER):
                await self._send(events[at : at + TOGETHER])

    async def _send(self, events: Sequence[LogEvent]) -> None:
        items = [
            self._item(self.events.encode(self.dialect, event), event.number) for event in events
        ]
        await self.call.write(*items)
        self.last = events[-1].number

    def _item(self, item: bytes, number: int) -> bytes:
        if not self.numbers:
            return item
        return _add_number(item, self._event_id(number), self.package)


def _add_number(item: bytes, number: str, package: str) -> bytes:
    """Return a stream's item with the number of its event in its metadata.

    Bytes appended to a message are merged into it (protobuf's encoding, "Last One Wins"), so nothing is encoded again.
    """
    made = message_class(f"{package}.StreamResponse")
    # the tag of its only field comes first
    name = made.DESCRIPTOR.fields_by_number[item[0] >> 3].name
    more = made(**{name: {"metadata": {RESUMABLE_STREAMS.uri: number}}})
    return item + more.SerializeToString()
