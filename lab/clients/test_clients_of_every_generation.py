"""Published clients of every generation hold a conversation with the host: at its card, at a pinned mount, at the bare address of an agent.

Clients that cannot live beside the tests' own a2a-sdk run in environments of their own; see decision 24.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import httpx
import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import AgentCard, AgentInterface, TaskState
from a2a.utils import errors

from lab.clients.programs.environments import NODE, Unavailable
from lab.clients.published import Client, Say, Told
from tests.journeys.hosts import Host, host
from tests.journeys.sdk import BINDINGS, Official, last_state, said, word
from tests.journeys.waiting import PATIENCE

#: Once, as in production. The first run makes environments.
pytestmark = [pytest.mark.timeout(600), pytest.mark.backend("stack")]

AGENT = "/agents/demo"
CARD, OLD_CARD = "/.well-known/agent-card.json", "/.well-known/agent.json"
#: What each client must be able to do, by the names its script gives.
CHECKS = [
    "card_names_the_dialect",
    "blocking_send",
    "send_at_once_and_poll",
    "stream_of_chunks",
    "history_length",
    "input_required_and_reply",
    "relayed_question",
    "streamed_question_and_reply",
    "cancel_running",
    "resubscribe_running",
    "dropped_stream_taken_up",
    "direct_message",
    "failed_task",
    "rejected_task",
    "files_and_data",
    "unknown_task",
    "resubscribe_to_unknown_task",
    "cancel_of_ended_task",
    "message_to_ended_task",
    "extended_card",
]
#: What a client has no method for.
CANNOT = {
    "sdk_02.py": {"resubscribe_running", "dropped_stream_taken_up", "resubscribe_to_unknown_task"}
}


@dataclass(frozen=True)
class Place:
    """Paths below the host: of the card, of the endpoint that it names (none = gRPC), and of where to talk instead."""

    card: str
    endpoint: str
    at: str = ""


def places(version: str) -> dict[str, Place]:
    """The ways to an agent."""
    card = OLD_CARD if version == "0.2" else CARD
    pinned = f"{AGENT}/a2a/{version}"
    # Clients of three generations read the old name: its card sends them where it is seen what they speak.
    named = f"{AGENT}/a2a" if card == OLD_CARD else pinned
    return {
        "by the card of the host": Place(card, named),
        "by the card of a pinned mount": Place(pinned + card, pinned),
        "at the bare address of the agent": Place(card, named, at=AGENT),
    }


CLIENTS = {
    "a2a-sdk 0.2": Client("sdk_02.py", "0.2", ("JSONRPC",)),
    "a2a-sdk 0.3": Client("sdk_03.py", "0.3"),
    "@a2a-js/sdk 0.3": Client("sdk_js_03.mjs", "0.3"),
    "@a2a-js/sdk 1.x": Client("sdk_js_10.mjs", "1.0"),
    "@a2a-js/sdk 1.x speaking 0.3": Client("sdk_js_10.mjs", "0.3"),
}


def checks_of(client: Client) -> list[str]:
    """What it is asked."""
    return [check for check in CHECKS if check not in CANNOT.get(client.script, ())]


def converse(client: Client, host: Host, place: Place, say: Say) -> Told:
    """What went wrong at a place."""
    url = host.here
    endpoint = url + place.endpoint if place.endpoint else f"http://127.0.0.1:{host.grpc}"
    at = [url + place.at] if place.at else []
    return client.converse(say, checks_of(client), url + place.card, endpoint, *at)


#: Each client at each place.
MEETINGS = {
    f"{name} {way}": (client, place)
    for name, client in CLIENTS.items()
    for way, place in places(client.version).items()
}
MEETINGS |= {
    f"a2a-sdk 0.3 over gRPC {way}": (Client("sdk_03.py", "0.3", bindings=("GRPC",)), place)
    for way, place in {
        "by the card of the host": Place(CARD, ""),
        "by the card of a pinned mount": Place(f"{AGENT}/a2a/0.3{CARD}", ""),
    }.items()
}


def excused(client: Client) -> list[pytest.MarkDecorator]:
    """On a machine without node: not run, and shown among the results."""
    return [pytest.mark.xfail(run=False, reason=NODE)] if client.javascript and NODE else []


@pytest.fixture(scope="module")
def here(emptied: None) -> Iterator[Host]:
    """A host, and gRPC."""
    with host(grpc=True) as made:
        yield made


@pytest.fixture(scope="module")
def conversation(here: Host, say: Say) -> Callable[[Client, Place], Told]:
    """All that a client has to say at a place, asked once."""

    @functools.cache
    def hold(client: Client, place: Place) -> Told:
        try:
            return converse(client, here, place, say)
        except Unavailable as why:
            cases = [(binding, check) for binding in client.bindings for check in CHECKS]
            return dict.fromkeys(cases, f"The environment cannot be made: {why}")

    return hold


class TestAPublishedClient:
    @pytest.mark.parametrize(
        ("client", "place", "case"),
        [
            pytest.param(client, place, case, id="-".join((name, *case)), marks=excused(client))
            for name, (client, place) in MEETINGS.items()
            for case in itertools.product(client.bindings, checks_of(client))
        ],
    )
    def test_finds_its_way(
        self,
        conversation: Callable[[Client, Place], Told],
        client: Client,
        place: Place,
        case: tuple[str, str],
    ) -> None:
        told = conversation(client, place)[case]
        assert not told, told


@dataclass(frozen=True)
class Ours:
    """The a2a-sdk 1.x of the tests: one binding, one version of the protocol, at one place."""

    official: Official
    interface: AgentInterface
    version: str
    endpoint: str

    @property
    def old(self) -> bool:
        """Does it speak 0.3?"""
        return self.version.startswith("0.")

    def refused(self, kind: type[errors.A2AError]) -> AbstractContextManager[object]:
        """An error of this kind; over HTTP+JSON of 0.3 the client cannot tell errors apart."""
        vague = self.old and self.interface.protocol_binding == "HTTP+JSON"
        return pytest.raises(errors.A2AError if vague else kind, check=_is_an_answer)


def _is_an_answer(error: errors.A2AError) -> bool:
    return "Network communication error" not in str(error)


def _interface(card: AgentCard, version: str, binding: str) -> AgentInterface:
    found: AgentInterface = next(
        one
        for one in card.supported_interfaces
        if one.protocol_binding == binding and one.protocol_version.startswith(version)
    )
    return found


def _client(http: httpx.AsyncClient, binding: str, *, streaming: bool) -> ClientFactory:
    config = ClientConfig(
        streaming=streaming, httpx_client=http, supported_protocol_bindings=[binding]
    )
    return ClientFactory(config)


OURS = [
    pytest.param((version, place, binding), id=f"{version} {way} over {binding}")
    for version in ("1.0", "0.3")
    for way, place in places(version).items()
    for binding in BINDINGS
]


@pytest.fixture(params=OURS)
async def ours(here: Host, request: pytest.FixtureRequest) -> AsyncIterator[Ours]:
    """Talk as the interface of that version says."""
    version, place, binding = request.param
    async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
        base = f"{here.here}{place.card}".removesuffix(CARD)
        card = await A2ACardResolver(http, base).get_agent_card()
        found = _interface(card, version, binding)
        chosen = AgentInterface()
        chosen.CopyFrom(found)
        chosen.url = f"{here.here}{place.at}" if place.at else found.url
        del card.supported_interfaces[:]
        card.supported_interfaces.append(chosen)
        clients = [
            _client(http, binding, streaming=streaming).create(card) for streaming in (False, True)
        ]
        yield Ours(Official(*clients), found, version, f"{here.here}{place.endpoint}")


class TestTheClientOfTheTestsInBothItsVersions:
    S = TaskState

    async def test_finds_the_mount_of_its_version_in_the_card(self, ours: Ours) -> None:
        assert ours.interface.url == ours.endpoint

    async def test_sends_and_reads(self, ours: Ours) -> None:
        text = word()
        task = await ours.official.send(f"echo {text}")
        assert task.status.state == self.S.TASK_STATE_COMPLETED
        assert said(*task.artifacts) == text
        assert await ours.official.get(task.id) == task

    async def test_sends_without_waiting_and_polls(self, ours: Ours) -> None:
        task = await ours.official.start("slow 2")
        assert task.status.state in {self.S.TASK_STATE_SUBMITTED, self.S.TASK_STATE_WORKING}
        done = await ours.official.until(task.id, self.S.TASK_STATE_COMPLETED)
        assert said(*done.artifacts) == "Slept 2 s"

    async def test_streams_chunks_that_add_up(self, ours: Ours) -> None:
        events = await ours.official.stream("chunks 20")
        assert events[0].HasField("task")
        updates = [e.artifact_update for e in events if e.HasField("artifact_update")]
        assert [update.append for update in updates] == [False] + [True] * 19
        assert [update.last_chunk for update in updates] == [False] * 19 + [True]
        assert last_state(events) == self.S.TASK_STATE_COMPLETED
        task = await ours.official.get(events[0].task.id)
        assert said(*task.artifacts) == said(*[update.artifact for update in updates])

    async def test_reads_as_much_history_as_it_asks_for(self, ours: Ours) -> None:
        asked = await ours.official.send("ask Who?")
        await ours.official.send("Ada", task=asked.id)
        history = (await ours.official.get(asked.id)).history
        assert (said(history[0]), said(history[-1])) == ("ask Who?", "Ada")
        (newest,) = (await ours.official.get(asked.id, history_length=1)).history
        assert said(newest) == "Ada"

    async def test_answers_a_question(self, ours: Ours) -> None:
        asked = await ours.official.send("ask Who?")
        assert asked.status.state == self.S.TASK_STATE_INPUT_REQUIRED
        assert said(asked.status.message) == "Who?"
        done = await ours.official.send("Ada", task=asked.id, context=asked.context_id)
        assert (done.id, done.context_id) == (asked.id, asked.context_id)
        assert done.status.state == self.S.TASK_STATE_COMPLETED
        assert said(*done.artifacts) == "Ada"

    async def test_answers_a_question_in_a_stream(self, ours: Ours) -> None:
        events = await ours.official.stream("ask Who?")
        assert last_state(events) == self.S.TASK_STATE_INPUT_REQUIRED
        more = await ours.official.stream("Ada", task=events[0].task.id)
        assert more[0].task.id == events[0].task.id
        assert last_state(more) == self.S.TASK_STATE_COMPLETED

    async def test_cancels_a_running_task_which_ends_its_streams(self, ours: Ours) -> None:
        task = await ours.official.start("slow 60")
        stream = ours.official.subscription(task.id)
        events = [await anext(stream)]
        assert events[0].task.id == task.id
        canceled = await ours.official.cancel(task.id)
        assert canceled.status.state == self.S.TASK_STATE_CANCELED
        events += [event async for event in stream]
        assert last_state(events) == self.S.TASK_STATE_CANCELED

    async def test_takes_up_a_dropped_stream(self, ours: Ours) -> None:
        stream = ours.official.streaming.send_message(ours.official.request("slow 60"))
        first = await anext(stream)
        assert isinstance(stream, AsyncGenerator)
        await stream.aclose()
        again = ours.official.subscription(first.task.id)
        assert (await anext(again)).task.id == first.task.id
        await ours.official.cancel(first.task.id)
        assert last_state([event async for event in again]) == self.S.TASK_STATE_CANCELED

    async def test_takes_a_message_for_an_answer(self, ours: Ours) -> None:
        assert said((await ours.official.answer("message hello")).message) == "hello"
        (event,) = await ours.official.stream("message hello")
        assert said(event.message) == "hello"

    @pytest.mark.parametrize(
        ("text", "state"),
        [("fail boom", S.TASK_STATE_FAILED), ("reject boom", S.TASK_STATE_REJECTED)],
    )
    async def test_hears_why_a_task_ended_badly(
        self, ours: Ours, text: str, state: TaskState
    ) -> None:
        task = await ours.official.send(text)
        assert (task.status.state, said(task.status.message)) == (state, "boom")
        assert last_state(await ours.official.stream(text)) == state

    async def test_gets_files_and_data_as_they_are(self, ours: Ours) -> None:
        file, link = (await ours.official.send("file some bytes")).artifacts
        assert (file.parts[0].raw, file.parts[0].filename) == (b"some bytes", "demo.txt")
        assert link.parts[0].url == "https://example.com/demo.txt"
        data = (await ours.official.send("data word")).artifacts[0].parts[0].data
        assert dict(data.struct_value) == {"said": "word", "length": 4.0}

    async def test_does_not_find_what_is_not_there(self, ours: Ours) -> None:
        missing = f"no-{word()}"
        peer = ours.official
        for call in (peer.get, peer.cancel, peer.subscribe):
            with ours.refused(errors.TaskNotFoundError):
                await call(missing)
        with ours.refused(errors.TaskNotFoundError):
            await peer.send("echo x", task=missing)

    async def test_can_neither_cancel_nor_go_on_with_an_ended_task(self, ours: Ours) -> None:
        task = await ours.official.send("echo x")
        with ours.refused(errors.TaskNotCancelableError):
            await ours.official.cancel(task.id)
        ended = errors.InvalidParamsError if ours.old else errors.UnsupportedOperationError
        with ours.refused(ended):
            await ours.official.send("echo y", task=task.id)
        assert said(*(await ours.official.get(task.id)).artifacts) == "x"


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("base", ["", f"{AGENT}/a2a/1.0", f"{AGENT}/a2a/0.3"])
async def test_a_client_that_asks_for_the_card_as_1_0_gets_one_it_can_use(
    here: Host, base: str, binding: str
) -> None:
    async with httpx.AsyncClient(timeout=PATIENCE, trust_env=False) as http:
        factory = _client(http, binding, streaming=False)
        assert http.headers["A2A-Version"] == "1.0"
        client = await factory.create_from_url(f"{here.here}{base}")
        text = word()
        assert said(*(await Official(client, client).send(f"echo {text}")).artifacts) == text
