"""Runs of AG-UI: every event is valid, every break says so, and questions are interrupts."""

from __future__ import annotations

import asyncio
import base64
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from ag_ui.core import Event
from pydantic import TypeAdapter
from pytest_django import Settings

from a2a_doors import hang_ups
from a2a_tasks import process_lifetime
from a2a_tasks.agents import Turn, data
from a2a_tasks.models import Task
from a2a_tasks.store.db import run_in_thread
from tests.support.agents_under_test import playing
from tests.support.bindings.client import Client
from tests.support.bindings.puppet import Puppet
from tests.support.doors import Runs

pytestmark = [pytest.mark.django_db]

NO_BASE64 = {"type": "image", "source": {"type": "data", "value": "?", "mimeType": "image/png"}}
LONG_TYPE = {"type": "image", "source": {"type": "data", "value": "aGk=", "mimeType": "x" * 256}}
VALID: TypeAdapter[Any] = TypeAdapter(Event)
FORM = {
    "type": "object",
    "properties": {"amount": {"type": "integer"}},
    "required": ["amount"],
}


class Rooms:
    """An agent that does what the first word says, and what it has heard by context."""

    def __init__(self) -> None:
        self.heard: defaultdict[str, list[str]] = defaultdict(list)

    async def run(self, turn: Turn) -> AsyncIterator[Any]:  # noqa: C901 - a word for each case
        """Answer."""
        self.heard[str(turn.message.context_id)].append(turn.text)
        word, _, rest = turn.text.partition(" ")
        if answer := await turn.answer:
            yield f"paid {answer['amount']}"
            return
        match word:
            case "ask":
                yield turn.ask("Which one?")
            case "form":
                yield "Well. "
                yield turn.ask("How much?", form=FORM)
            case "secret":
                yield turn.need_auth("Sign in.")
            case "fail":
                yield "half"
                yield turn.fail("No.")
            case "reject":
                yield turn.reject("Not you.")
            case "data":
                yield turn.artifact("See:", data({"a": 1}))
            case "tools":
                yield turn.working("I look.")
                yield "before"
                yield turn.tool_call("c1", "add", {"a": 2})
                yield turn.tool_result("c1", {"sum": 4})
                yield "after"
            case "parts":
                yield " ".join(f"{part.media_type}:{part.url or part.raw}" for part in turn.parts)
            case "call":
                yield (await turn.call(rest, "echo called")).text
            case "nothing":
                pass
            case _:
                yield turn.text


@pytest.fixture
def rooms() -> Iterator[Rooms]:
    """That agent."""
    made = Rooms()
    about: dict[str, Any] = {"default_input_modes": ["*/*"], "calls": ["*"], "reports_tools": True}
    with playing(made.run, slug="rooms", **about):
        yield made


@pytest.fixture
def runs(client: Client, rooms: Rooms) -> Runs:
    """A front end."""
    return Runs(client, "rooms")


def kinds(events: list[dict[str, Any]]) -> list[str]:
    """The types of events, each of which is valid."""
    for event in events:
        VALID.validate_python(event)
        assert None not in event.values()
    return [event["type"] for event in events]


def text_of(events: list[dict[str, Any]]) -> str:
    return "".join(e["delta"] for e in events if e["type"] == "TEXT_MESSAGE_CHUNK")


def interrupt_of(events: list[dict[str, Any]]) -> dict[str, Any]:
    (interrupt,) = events[-1]["outcome"]["interrupts"]
    return dict(interrupt)


async def count() -> int:
    return await run_in_thread(Task.objects.count)


class TestARun:
    async def test_begins_and_finishes_and_names_its_task(self, runs: Runs) -> None:
        events = await runs.say("hi")
        assert kinds(events) == ["RUN_STARTED", "CUSTOM", "TEXT_MESSAGE_CHUNK", "RUN_FINISHED"]
        started, custom, chunk, finished = events
        task = await run_in_thread(lambda: Task.objects.select_related("context").get())
        ids = {"threadId": "thread-1", "runId": "thread-1-run-1"}
        assert started == {"type": "RUN_STARTED", **ids, "protocolVersion": "1.0"}
        about = {"taskId": task.public_id, "contextId": task.context.public_id, "agent": "rooms"}
        assert (custom["name"], custom["value"]) == ("a2a.task", about)
        assert (chunk["delta"], chunk["role"]) == ("hi", "assistant")
        assert finished == {"type": "RUN_FINISHED", **ids, "outcome": {"type": "success"}}

    async def test_never_ends_without_a_text(self, runs: Runs) -> None:
        assert text_of(await runs.say("nothing")) == "Done, without a text."

    async def test_shows_tools_and_work_between_the_texts(self, runs: Runs) -> None:
        events = await runs.say("tools")
        assert kinds(events)[2:] == [
            "ACTIVITY_SNAPSHOT",
            "TEXT_MESSAGE_CHUNK",
            "TOOL_CALL_START",
            "TOOL_CALL_ARGS",
            "TOOL_CALL_END",
            "TOOL_CALL_RESULT",
            "TEXT_MESSAGE_CHUNK",
            "RUN_FINISHED",
        ]
        activity, before, start, arguments, _, result, after, _ = events[2:]
        assert activity["content"] == {"state": "working", "text": "I look."}
        assert (start["toolCallId"], start["toolCallName"]) == ("c1", "add")
        assert (arguments["delta"], result["content"]) == ('{"a":2}', '{"sum":4}')
        assert before["messageId"] != after["messageId"]

    async def test_has_data_as_an_event_of_its_own(self, runs: Runs) -> None:
        events = await runs.say("data")
        custom = events[2]
        assert custom["name"] == "a2a.artifact"
        assert custom["value"]["artifact"]["parts"] == [{"text": "See:"}, {"data": {"a": 1}}]
        assert text_of(events) == "See:"

    @pytest.mark.django_db(transaction=True)
    async def test_shows_called_agents_as_sub_agents(
        self, runs: Runs, puppet: Puppet, settings: Settings
    ) -> None:
        settings.A2A_PARK_SECONDS = 0.0
        settings.A2A_POLL_SECONDS = 0.05
        body = runs.make(messages=[{"id": "1", "role": "user", "content": "call puppet"}])
        async with runs.begin(body) as stream:
            hand = await puppet.hand()
            started = await stream.until("SUBAGENT_STARTED")
            assert started["name"] == "puppet"
            hand.say("called")
            hand.end()
            events = await stream.to_the_end()
        kinds(events)
        finished = next(event for event in events if event["type"] == "SUBAGENT_FINISHED")
        assert finished["subagentRunId"] == started["subagentRunId"]
        assert text_of(events) == "called"

    async def test_tells_the_usage_of_the_task_that_it_began(self, client: Client) -> None:
        async def run(turn: Turn) -> Any:
            """Say what it cost, and ask once."""
            await turn.usage(model="m", input_tokens=3, output_tokens=4)
            return "done" if turn.text == "that" else turn.ask("Which one?")

        with playing(run, slug="counted", reports_usage=True):
            runs = Runs(client, "counted")
            events = await runs.say("go")
            kinds(events)
            tokens = {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}
            assert events[-1]["usage"] == [{"model": "m", **tokens}]
            entry = {"interruptId": interrupt_of(events)["id"], "status": "resolved"}
            resumed = await runs.run(resume=[{**entry, "payload": "that"}])
        assert text_of(resumed) == "done"
        assert "usage" not in resumed[-1]

    async def test_is_kept_alive(self, client: Client, puppet: Puppet, settings: Settings) -> None:
        settings.A2A_KEEPALIVE_SECONDS = 0.05
        runs = Runs(client, "puppet", messages=[{"id": "1", "role": "user", "content": "go"}])
        async with runs.begin(runs.make()) as stream:
            hand = await puppet.hand()
            await stream.until("CUSTOM")
            while not stream.comments:
                assert await stream.exchange.piece() == b": keep-alive\n"
                stream.comments += 1
            hand.end()
            await stream.to_the_end()


class TestABreak:
    @pytest.mark.parametrize(("word", "code"), [("fail", "FAILED"), ("reject", "REJECTED")])
    async def test_is_the_last_event(self, runs: Runs, word: str, code: str) -> None:
        events = await runs.say(word)
        assert kinds(events)[-1] == "RUN_ERROR"
        assert events[-1]["code"] == f"AGENT_{code}"
        assert events[-1]["message"] in {"No.", "Not you."}

    async def test_by_a_drain_says_so_and_the_run_can_be_joined(
        self, client: Client, puppet: Puppet, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        life = process_lifetime.Lifetime()
        runs = Runs(client, "puppet", messages=[{"id": "1", "role": "user", "content": "go"}])
        body = runs.make()
        with monkeypatch.context() as patched:
            for name in ("on_drain", "is_draining"):
                patched.setattr(process_lifetime, name, getattr(life, name))
            async with runs.begin(body) as stream:
                hand = await puppet.hand()
                hand.say("hello")
                await stream.until("TEXT_MESSAGE_CHUNK")
                life.begin_drain()
                assert (await stream.to_the_end())[-1]["code"] == "DRAINING"
        async with runs.begin(body) as stream:
            await stream.until("TEXT_MESSAGE_CHUNK")
            hand.end()
            assert text_of(await stream.to_the_end()) == "hello"
        assert await count() == 1

    async def test_by_a_cancel_elsewhere_is_an_outcome(
        self, client: Client, puppet: Puppet
    ) -> None:
        runs = Runs(client, "puppet", messages=[{"id": "1", "role": "user", "content": "go"}])
        async with runs.begin(runs.make()) as stream:
            await puppet.hand()
            task = (await stream.until("CUSTOM"))["value"]["taskId"]
            await client.ask("POST", f"/agents/puppet/tasks/{task}:cancel", b"{}")
            events = await stream.to_the_end()
        assert events[-1]["outcome"] == {"type": "cancelled"}

    async def test_by_the_client_stops_the_agent(
        self, client: Client, puppet: Puppet, settings: Settings
    ) -> None:
        settings.A2A_HANG_UP_SECONDS = 0.05
        runs = Runs(client, "puppet", messages=[{"id": "1", "role": "user", "content": "go"}])
        async with runs.begin(runs.make()) as stream:
            hand = await puppet.hand()
            hand.say("half")
            await stream.until("TEXT_MESSAGE_CHUNK")
        await hand.ended()
        while waiting := set(hang_ups._waiting):
            await asyncio.wait(waiting, timeout=20)
        runs.messages.append({"id": "2", "role": "assistant", "content": "half"})
        runs.messages.append({"id": "3", "role": "user", "content": "on"})
        async with runs.begin(runs.make()) as stream:
            hand = await puppet.hand()
            assert hand.turn.text == "on"
            hand.end()
            await stream.to_the_end()


class TestAQuestion:
    async def test_is_an_interrupt_that_a_resume_answers(self, runs: Runs, rooms: Rooms) -> None:
        events = await runs.say("ask")
        assert "TEXT_MESSAGE_CHUNK" not in kinds(events)
        interrupt = interrupt_of(events)
        assert (interrupt["reason"], interrupt["message"]) == ("input_required", "Which one?")
        entry = {"interruptId": interrupt["id"], "status": "resolved", "payload": "this"}
        assert text_of(await runs.run(resume=[entry])) == "this"
        assert await count() == 1
        assert list(rooms.heard.values()) == [["ask", "this"]]

    async def test_with_a_form_has_its_schema(self, runs: Runs) -> None:
        events = await runs.say("form")
        interrupt = interrupt_of(events)
        assert text_of(events) == "Well. "
        assert interrupt["responseSchema"] == FORM
        answer = {"interruptId": interrupt["id"], "status": "resolved", "payload": {"amount": 3}}
        assert text_of(await runs.run(resume=[answer])) == "paid 3"

    async def test_with_a_form_refuses_what_does_not_fit_and_stands(
        self, client: Client, runs: Runs
    ) -> None:
        interrupt = interrupt_of(await runs.say("form"))
        for payload in ({"amount": "much"}, None):
            entry = {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}
            answer = await client.post(runs.path, runs.make(resume=[entry]))
            assert answer.status == 400
            assert answer.json["error"]["message"]
        entry["payload"] = {"amount": 3}
        assert text_of(await runs.run(resume=[entry])) == "paid 3"

    async def test_that_was_answered_is_not_answered_again(self, client: Client) -> None:
        async def run(turn: Turn) -> AsyncIterator[Any]:
            yield turn.ask(f"after {turn.text}?")

        with playing(run, slug="curious"):
            runs = Runs(client, "curious")
            first = interrupt_of(await runs.say("a"))
            entry = {"interruptId": first["id"], "status": "resolved", "payload": "b"}
            assert interrupt_of(await runs.run(resume=[entry]))["message"] == "after b?"
            stale = runs.make(resume=[{**entry, "payload": "c"}])
            answer = await client.post(runs.path, stale)
            assert (answer.status, answer.json["error"]["code"]) == (400, "UNSUPPORTED_OPERATION")

    async def test_for_a_credential_is_an_interrupt(self, runs: Runs) -> None:
        assert interrupt_of(await runs.say("secret"))["reason"] == "auth_required"

    async def test_that_was_answered_is_not_answered_by_its_old_interrupt(
        self, client: Client, runs: Runs
    ) -> None:
        """The task asks something else by then, at this door or another."""
        old = interrupt_of(await runs.say("ask"))
        entry = {"interruptId": old["id"], "status": "resolved", "payload": "ask"}
        new = interrupt_of(await runs.run(resume=[entry]))
        entry["payload"] = "late"
        for status in ("resolved", "cancelled"):
            late = runs.make(resume=[{**entry, "status": status}])
            answer = await client.post(runs.path, late)
            assert (answer.status, answer.json["error"]["code"]) == (400, "UNSUPPORTED_OPERATION")
        entry = {"interruptId": new["id"], "status": "resolved", "payload": "now"}
        assert text_of(await runs.run(resume=[entry])) == "now"
        late = runs.make(resume=[{"interruptId": new["id"], "status": "cancelled"}])
        answer = await client.post(runs.path, late)
        assert (answer.status, answer.json["error"]["code"]) == (400, "TASK_NOT_CANCELABLE")

    async def test_is_answered_once_by_a_resume_that_is_sent_again(
        self, runs: Runs, rooms: Rooms
    ) -> None:
        interrupt = interrupt_of(await runs.say("ask"))
        entry = {"interruptId": interrupt["id"], "status": "resolved", "payload": "this"}
        body = runs.make(resume=[entry])
        for _ in range(2):
            async with runs.begin(body) as stream:
                assert text_of(await stream.to_the_end()) == "this"
        assert list(rooms.heard.values()) == [["ask", "this"]]

    async def test_that_is_given_up_cancels_the_task(self, runs: Runs) -> None:
        interrupt = interrupt_of(await runs.say("ask"))
        entry = {"interruptId": interrupt["id"], "status": "cancelled"}
        for _ in range(2):
            events = await runs.run(resume=[entry])
            assert kinds(events) == ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]
            assert events[-1]["outcome"] == {"type": "cancelled"}
        state = await run_in_thread(lambda: Task.objects.get().state)
        assert state == "TASK_STATE_CANCELED"

    @pytest.mark.parametrize("status", ["resolved", "cancelled"])
    async def test_is_not_answered_beside_another_and_stands(
        self, client: Client, runs: Runs, status: str
    ) -> None:
        one = interrupt_of(await runs.say("ask"))
        other = interrupt_of(await Runs(client, "rooms", "thread-2").say("ask"))
        entries = [
            {"interruptId": one["id"], "status": status, "payload": "this"},
            {"interruptId": other["id"], "status": "resolved", "payload": "that"},
        ]
        answer = await client.post(runs.path, runs.make(resume=entries))
        assert answer.status == 400
        assert answer.json["error"]["message"].startswith("resume must have one entry")
        entry = {**entries[0], "status": "resolved"}
        assert text_of(await runs.run(resume=[entry])) == "this"

    async def test_of_somebody_else_is_not_found(self, client: Client, runs: Runs) -> None:
        for status in ("resolved", "cancelled"):
            for name in ("unknown:3", "unknown", "unknown:x", "unknown:99999999999", ":"):
                entry = {"interruptId": name, "status": status, "payload": "x"}
                answer = await client.post(runs.path, runs.make(resume=[entry]))
                assert (answer.status, answer.json["error"]["code"]) == (404, "TASK_NOT_FOUND")

    async def test_is_answered_by_a_new_message_of_other_clients(
        self, runs: Runs, rooms: Rooms
    ) -> None:
        await runs.say("ask")
        assert text_of(await runs.say("this")) == "this"
        assert await count() == 1
        assert list(rooms.heard.values()) == [["ask", "this"]]


class TestAThread:
    async def test_is_a_context_in_which_each_message_is_heard_once(
        self, runs: Runs, rooms: Rooms
    ) -> None:
        for text in ("a", "b", "fail", "c"):
            await runs.say(text)
        assert list(rooms.heard.values()) == [["a", "b", "fail", "c"]]

    async def test_that_is_new_here_brings_its_history(self, runs: Runs, rooms: Rooms) -> None:
        runs.messages = [
            {"id": "1", "role": "user", "content": "a"},
            {"id": "2", "role": "assistant", "content": "x"},
        ]
        await runs.say("b")
        assert list(rooms.heard.values()) == [
            ["Conversation so far:\n\nuser: a\n\nassistant: x\nb"]
        ]

    async def test_of_the_same_name_with_another_agent_is_another(
        self, client: Client, runs: Runs, puppet: Puppet
    ) -> None:
        await runs.say("a")
        other = Runs(client, "demo")
        await other.say("echo a")
        contexts = await run_in_thread(lambda: set(Task.objects.values_list("context")))
        assert len(contexts) == 2

    @pytest.mark.parametrize("text", ["a", "ask", "fail"])
    async def test_joins_a_run_that_is_sent_again(self, runs: Runs, text: str) -> None:
        runs.messages = [
            {"id": "0", "role": "assistant", "content": "Hello."},
            {"id": "1", "role": "user", "content": text},
        ]
        body = runs.make()
        found = []
        for _ in range(2):
            async with runs.begin(body) as stream:
                found.append(await stream.to_the_end())
        assert found[0] == found[1]
        assert await count() == 1

    async def test_has_media(self, runs: Runs) -> None:
        raw = base64.b64encode(b"x").decode()
        source = {"type": "data", "value": raw, "mimeType": "image/png"}
        link = {"type": "url", "value": "https://x.example/a.pdf"}
        content = [
            {"type": "text", "text": "parts"},
            {"type": "image", "source": source},
            {"type": "document", "source": link},
        ]
        assert text_of(await runs.say(content)).split() == [
            "None:UNSET",
            f"image/png:{raw}",
            "None:https://x.example/a.pdf",
        ]


class TestARefusedRun:
    @pytest.mark.parametrize(
        "more",
        [
            {"messages": []},
            {"messages": [{"id": "1", "role": "assistant", "content": "a"}]},
            {"messages": [{"id": "1", "role": "user", "content": [{"type": "video"}]}]},
            {"messages": [{"role": "user"}]},
            {"messages": [{"id": "x" * 300, "role": "user", "content": "a"}]},
            {"messages": [{"id": "a\x00", "role": "user", "content": "a"}]},
            {"messages": [{"id": "1", "role": "user", "content": [NO_BASE64]}]},
            {"messages": [{"id": "1", "role": "user", "content": [LONG_TYPE]}]},
            {"threadId": 1},
            {"resume": [{}]},
        ],
    )
    async def test_is_told_what_is_wrong(self, client: Client, runs: Runs, more: Any) -> None:
        answer = await client.post(runs.path, runs.make(**more))
        assert (answer.status, answer.json["error"]["code"]) == (400, "INVALID_PARAMS")
        assert await count() == 0

    async def test_by_a_rate_is_told_the_seconds(
        self, client: Client, runs: Runs, settings: Settings
    ) -> None:
        settings.A2A_RATE_PER_AGENT = "1/h"
        await client.post(runs.path, {})
        answer = await client.post(runs.path, {})
        assert answer.status == 429
        assert answer.json["error"]["retryAfterSeconds"] > 1

    async def test_without_credentials(
        self, client: Client, runs: Runs, settings: Settings
    ) -> None:
        settings.A2A_ANONYMOUS = "0"
        async with client.exchange("POST", runs.path) as exchange:
            answer = await exchange.response()
        assert (answer.status, exchange.taken) == (401, 0)

    async def test_of_an_unknown_agent_and_by_a_wrong_verb(self, client: Client) -> None:
        assert (await client.post("/agents/nobody/ag-ui", {})).status == 404
        assert (await client.get("/agents/demo/ag-ui")).header("allow") == "POST"


class TestAPageOfAnotherOrigin:
    async def test_may_run_agents_if_the_operator_names_it(
        self, client: Client, settings: Settings
    ) -> None:
        settings.A2A_AG_UI_ORIGINS = "https://one.example, https://two.example"
        headers = {"origin": "https://two.example", "access-control-request-method": "POST"}
        answer = await client.ask("OPTIONS", "/agents/demo/ag-ui", headers=headers)
        assert (answer.status, answer.header("access-control-allow-origin")) == (
            204,
            "https://two.example",
        )
        answer = await client.post("/agents/demo/ag-ui", {}, headers)
        assert answer.header("access-control-allow-origin") == "https://two.example"

    async def test_gets_no_permission_otherwise(self, client: Client) -> None:
        headers = {"origin": "https://two.example"}
        answer = await client.ask("OPTIONS", "/agents/demo/ag-ui", headers=headers)
        assert answer.header("access-control-allow-origin") is None
