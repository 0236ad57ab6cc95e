"""One rpc and its answer: the same one call into the table as the other bindings make."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from a2a_tasks import lifetime
from a2a_tasks.access.callers import existing
from a2a_tasks.agents import Agent
from a2a_tasks.agents.host_extensions import RESUMABLE_STREAMS
from a2a_tasks.bindings.circumstances import Circumstances, Table, Visit, circumstances
from a2a_tasks.bindings.faults import told
from a2a_tasks.bindings.grpc.call import Call
from a2a_tasks.bindings.grpc.call_request import call_request
from a2a_tasks.bindings.grpc.event_ids import EVENT_ID, event_id, numbered
from a2a_tasks.bindings.grpc.forms import form
from a2a_tasks.bindings.grpc.refusals import refusal
from a2a_tasks.bindings.grpc.rpcs import Rpc
from a2a_tasks.conf import conf
from a2a_tasks.protocol.binding import Binding
from a2a_tasks.protocol.dialects import Dialect
from a2a_tasks.protocol.errors import A2AError, MethodNotFound, Overloaded, ParseError
from a2a_tasks.protocol.lifecycle import Recorded
from a2a_tasks.protocol.mounts import MOUNTS
from a2a_tasks.protocol.requests import Request
from a2a_tasks.streaming.stream import EventStream

__all__ = ["AGENT", "Exchange"]

#: The key of the metadata that names an agent by its slug.
AGENT = "a2a-agent"
#: What goes back as initial metadata, of the headers that the other bindings send.
SENT = {b"a2a-extensions", b"x-a2a-extensions"}
#: Events that are encoded before the first of them is sent.
TOGETHER = 64


class Exchange:
    """One call; what is known of it so far shapes the answer to what goes wrong."""

    def __init__(self, table: Table, rpc: Rpc, call: Call) -> None:
        self.table, self.rpc, self.call = table, rpc, call
        self.request = call_request(call)
        self.agent: Agent | None = None
        #: What is told at the end, however it ends.
        self.trailers: list[tuple[str, str | bytes]] = []
        self.dialect = rpc.dialect("")

    async def answer(self, body: bytes) -> None:
        """Send the answer or the stream, to its end or until the client leaves, its deadline comes, or the process drains."""
        try:
            await (self._stream if self.rpc.streams else self._unary)(body)
        except Exception as raised:  # noqa: BLE001 - whatever it is, the client gets an answer
            self.refuse(told(raised))
        else:
            self.call.end(metadata=self.trailers)

    async def _stream(self, body: bytes) -> None:
        events, found = await self._asked(body)
        relay = _Relay(self.call, events, found, self.rpc.package)
        try:
            await relay.to_the_end()
        finally:
            self.trailers.append((EVENT_ID, relay.place))

    async def _unary(self, body: bytes) -> None:
        result, found = await self._asked(body)
        self.call.begin(_sent(found))
        shown = (
            found.dialect.answer(self.rpc.operation, found.shown(result))
            if result is not None
            else None
        )
        await self.call.write(b"" if shown is None else self.rpc.write(shown))

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
        visit = Visit(self.request, agent, MOUNTS[self.dialect], self.table)
        caller = await visit.caller()
        self.dialect = self.rpc.dialect(visit.version(self.rpc.admitted))
        dialect = form(self.dialect)
        if message is None:
            raise ParseError("The message cannot be read")
        asked = dialect.decode(self.rpc.operation, self.rpc.read(message))
        return asked, circumstances(visit, dialect, caller, Binding.GRPC)

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

    def refuse(self, fault: A2AError) -> None:
        """End the call with the fault."""
        refused = refusal(fault, self.dialect, self.agent)
        self.call.end(refused.code, refused.message, (*self.trailers, *refused.trailers))


def _sent(found: Circumstances) -> Sequence[tuple[str, str]]:
    return [(name.decode(), value.decode()) for name, value in found.headers if name in SENT]


class _Relay:
    """A stream's items on their way to one client."""

    def __init__(self, call: Call, events: EventStream, found: Circumstances, package: str) -> None:
        self.call, self.events, self.found, self.package = call, events, found, package
        self.dialect: Dialect = found.dialect
        self.numbers = RESUMABLE_STREAMS.uri in found.call.extensions
        self.last = events.number

    @property
    def place(self) -> str:
        """The number of what was sent last."""
        return event_id(self.last, self.events.subject.mark)

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
        if rest.cancelled():
            raise Overloaded("This process stops and the task goes on: subscribe again")
        rest.result()

    async def _begin(self) -> None:
        """The first metadata leave at once, also for a client that resumes and has nothing to get yet."""
        gap = self.events.removed
        told = [("a2a-events-removed-before", str(gap))] if gap else []
        self.call.begin([*_sent(self.found), *told])
        await self._send_first()

    async def _send_first(self) -> None:
        self.last = self.events.number
        number = self.events.number
        begun = self.events.begun(self.dialect)
        await self.call.write(*(self._item(item, number) for item in begun))

    async def _send_rest(self) -> None:
        async for events in self.events.batches(float(conf.KEEPALIVE_SECONDS)):
            if events is None:
                await self._send_first()
                continue
            for at in range(0, len(events), TOGETHER):
                await self._send(events[at : at + TOGETHER])

    async def _send(self, events: Sequence[Recorded]) -> None:
        items = [
            self._item(self.events.encoded(self.dialect, event), event.number) for event in events
        ]
        await self.call.write(*items)
        self.last = events[-1].number

    def _item(self, item: bytes, number: int) -> bytes:
        if not self.numbers:
            return item
        return numbered(item, event_id(number, self.events.subject.mark), self.package)
