"""One rpc and its answer: the same one call into the table as the other bindings make."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, NoReturn

import grpc

from a2a_tasks import lifetime
from a2a_tasks.access.callers import existing
from a2a_tasks.agents import Agent
from a2a_tasks.agents.host_extensions import RESUMABLE_STREAMS
from a2a_tasks.bindings.circumstances import Circumstances, Table, Visit, circumstances
from a2a_tasks.bindings.faults import told
from a2a_tasks.bindings.grpc.call_request import call_request
from a2a_tasks.bindings.grpc.event_ids import EVENT_ID, event_id, numbered
from a2a_tasks.bindings.grpc.forms import form
from a2a_tasks.bindings.grpc.refusals import refusal
from a2a_tasks.bindings.grpc.rpcs import Rpc
from a2a_tasks.conf import conf
from a2a_tasks.protocol.dialects import Dialect
from a2a_tasks.protocol.errors import A2AError, MethodNotFound, Overloaded, ParseError
from a2a_tasks.protocol.mounts import MOUNTS
from a2a_tasks.protocol.requests import Request
from a2a_tasks.streaming.stream import EventStream

__all__ = ["AGENT", "Exchange"]

Context = grpc.aio.ServicerContext[Any, Any]
#: The key of the metadata that names an agent by its slug.
AGENT = "a2a-agent"
#: What goes back as initial metadata, of the headers that the other bindings send.
SENT = {b"a2a-extensions", b"x-a2a-extensions"}


class Exchange:
    """One call; what is known of it so far shapes the answer to what goes wrong."""

    def __init__(self, table: Table, rpc: Rpc, context: Context) -> None:
        self.table, self.rpc, self.context = table, rpc, context
        self.request = call_request(context)
        self.agent: Agent | None = None

    async def unary(self, body: bytes) -> bytes:
        """The one answer."""
        try:
            return await self._answer(body)
        except Exception as raised:  # noqa: BLE001 - whatever it is, the client gets an answer
            await self._refuse(told(raised))

    async def stream(self, body: bytes) -> None:
        """Send the stream to its end, or until the client leaves, its deadline comes, or the process drains."""
        try:
            events, found = await self._asked(body)
            await _Relay(self.context, events, found, self.rpc.package).to_the_end()
        except Exception as raised:  # noqa: BLE001 - whatever it is, the client gets an answer
            await self._refuse(told(raised))

    async def _answer(self, body: bytes) -> bytes:
        result, found = await self._asked(body)
        if metadata := _sent(found):
            await self.context.send_initial_metadata(metadata)
        if result is None:
            return b""
        return self.rpc.write(found.dialect.answer(self.rpc.operation, found.shown(result)))

    async def _asked(self, body: bytes) -> tuple[Any, Circumstances]:
        """The result of the operation."""
        asked, found = await self._negotiate(body)
        operation = self._operation(found)
        found.call.permit(operation)
        return await self.table[operation](asked, found.call), found

    async def _negotiate(self, body: bytes) -> tuple[Request, Circumstances]:
        """Everything that comes before the operation: nothing is told to whoever may not come in."""
        message = self.rpc.parse(body)
        agent = self.agent = await self._agent(message)
        visit = Visit(self.request, agent, MOUNTS[self.rpc.dialect("")], self.table)
        caller = await visit.caller()
        dialect = form(self.rpc.dialect(visit.version(self.rpc.admitted)))
        if message is None:
            raise ParseError("The message cannot be read")
        asked = dialect.decode(self.rpc.operation, self.rpc.read(message))
        return asked, circumstances(visit, dialect, caller)

    async def _agent(self, message: Any) -> Agent:
        """The agent that the metadata name, or the first segment of the tenant, or else the default one.

        A segment that names an agent is taken off the tenant. Raises MethodNotFound, WrongCredentials, Overloaded.
        """
        if named := self.request.header(AGENT):
            return await self._existing(named)
        segment, _, rest = str(getattr(message, "tenant", "")).partition("/")
        found = await existing(self.request.credentials, segment) if segment else None
        if found is None:
            return await self._existing(str(conf.DEFAULT_AGENT))
        message.tenant = rest
        return found

    async def _existing(self, slug: str) -> Agent:
        found = await existing(self.request.credentials, slug)
        if found is None:
            raise MethodNotFound("There is no such agent")
        return found

    def _operation(self, found: Circumstances) -> str:
        """In 0.3 one rpc is for both cards: the fuller one, where there is one."""
        if self.rpc.name == "GetAgentCard" and found.call.agent.has_extended_card:
            return "GetExtendedAgentCard"
        return self.rpc.operation

    async def _refuse(self, fault: A2AError) -> NoReturn:
        refused = refusal(fault, self.rpc.package, self.agent)
        told = self.context.trailing_metadata() or ()
        await self.context.abort(refused.code, refused.message, (*told, *refused.trailers))


def _sent(found: Circumstances) -> Sequence[tuple[str, str]]:
    return [(name.decode(), value.decode()) for name, value in found.headers if name in SENT]


class _Relay:
    """A stream's items on their way to one client."""

    def __init__(
        self, context: Context, events: EventStream, found: Circumstances, package: str
    ) -> None:
        self.context, self.events, self.found, self.package = context, events, found, package
        self.dialect: Dialect = found.dialect
        self.numbers = RESUMABLE_STREAMS.uri in found.call.extensions
        self.last = events.number

    async def to_the_end(self) -> None:
        """Send all of it. Raises Overloaded when the process drains first."""
        loop = asyncio.get_running_loop()
        try:
            await self._begin()
            rest = asyncio.create_task(self._send_rest())
            forget = lifetime.on_drain(lambda: loop.call_soon_threadsafe(rest.cancel))
            try:
                await asyncio.wait({rest})
            finally:
                forget()
                rest.cancel()
                await asyncio.wait({rest})  # nothing is read any more when the log is let go of
        finally:
            await self.events.close()
            self._tell_last()
        if rest.cancelled():
            raise Overloaded("This process stops and the task goes on: subscribe again")
        rest.result()

    async def _begin(self) -> None:
        """The first metadata leave at once, also for a client that resumes and has nothing to get yet."""
        gap = self.events.removed
        told = [("a2a-events-removed-before", str(gap))] if gap else []
        await self.context.send_initial_metadata([*_sent(self.found), *told])
        await self._send_first()

    async def _send_first(self) -> None:
        self.last = self.events.number
        for item in self.events.begun(self.dialect):
            await self._send(item, self.events.number)

    async def _send_rest(self) -> None:
        async for events in self.events.batches(float(conf.KEEPALIVE_SECONDS)):
            if events is None:
                await self._send_first()
                continue
            for event in events:
                await self._send(self.events.encoded(self.dialect, event), event.number)
                self.last = event.number

    async def _send(self, item: bytes, number: int) -> None:
        if self.numbers:
            item = numbered(item, event_id(number, self.events.subject.mark), self.package)
        await self.context.write(item)

    def _tell_last(self) -> None:
        mark = self.events.subject.mark
        self.context.set_trailing_metadata(((EVENT_ID, event_id(self.last, mark)),))
