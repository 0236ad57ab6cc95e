"""Chat completions, whole and in chunks: their shapes, their contents, their ends."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from pytest_django import Settings

from a2a_tasks import process_lifetime
from a2a_tasks.agents import Agent, Turn, data, file, link
from a2a_tasks.models import Task
from a2a_tasks.store.db import run_in_thread
from tests.support.agents_under_test import playing
from tests.support.bindings.client import Client
from tests.support.bindings.puppet import Puppet
from tests.support.doors import Chats, user

pytestmark = [pytest.mark.django_db]


async def talk(turn: Turn) -> AsyncIterator[Any]:
    """Do what the first word says."""
    word, _, rest = turn.text.partition(" ")
    match word:
        case "echo":
            yield rest
        case "data":
            yield turn.artifact("See:", data({"a": 1}))
        case "files":
            yield turn.artifact(link("https://x.example/a.pdf", filename="a.pdf"))
            yield turn.artifact(file(b"hi", "b.png", "image/png"))
        case "two":
            yield turn.artifact("one")
            yield turn.artifact("two")
            yield turn.complete("end")
        case "fail":
            yield "half "
            yield turn.fail("The ledger is closed.")
        case "reject":
            yield turn.reject("Not for you.")
        case "use":
            await turn.usage(model="m", input_tokens=3, output_tokens=4)
            yield "used"
        case "parts":
            yield " ".join(f"{p.media_type}:{p.filename}:{p.url or p.raw}" for p in turn.parts)
        case "instructions":
            yield str((turn.message.metadata or {}).get("instructions"))


@pytest.fixture
def talker() -> Iterator[Agent]:
    """That agent."""
    modes = {"default_input_modes": ["*/*"], "reports_usage": True, "streaming": False}
    with playing(talk, slug="talker", **modes) as agent:
        yield agent


@pytest.fixture
def chats(client: Client, talker: Agent) -> Chats:
    """A client that talks to it."""
    return Chats(client, "talker")


async def count() -> int:
    return await run_in_thread(Task.objects.count)


class TestModels:
    async def test_are_the_agents(self, client: Client, talker: Agent) -> None:
        answer = await client.get("/v1/models")
        assert answer.status == 200
        assert answer.json["object"] == "list"
        found = {model["id"]: model for model in answer.json["data"]}
        assert found["talker"] == {
            "id": "talker",
            "object": "model",
            "created": 0,
            "owned_by": "a2a-host",
            "name": "Scripted",
        }

    async def test_one_by_its_id(self, client: Client, talker: Agent) -> None:
        assert (await client.get("/v1/models/talker")).json["id"] == "talker"
        missing = await client.get("/v1/models/nobody")
        assert (missing.status, missing.json["error"]["code"]) == (404, "model_not_found")

    async def test_are_below_the_prefix(self, client: Client, settings: Settings) -> None:
        settings.A2A_PREFIX = "/a2a"
        assert (await client.get("/a2a/v1/models/demo")).json["id"] == "demo"
        answer = await Chats(Client(client.app, "/a2a"), "demo").ask([user("echo hi")])
        assert answer.status == 200

    async def test_are_read_only(self, client: Client) -> None:
        answer = await client.post("/v1/models", {})
        assert (answer.status, answer.header("allow")) == (405, "GET, HEAD")

    @pytest.mark.parametrize("method", ["EAD", "GET, HEAD", ""])
    async def test_know_methods_by_their_whole_names(self, client: Client, method: str) -> None:
        async with client.exchange(method, "/v1/models") as exchange:
            assert (await exchange.response()).status == 405


class TestAWholeCompletion:
    async def test_has_all_members_that_clients_need(self, chats: Chats) -> None:
        answer = await chats.ask([user("echo hi")])
        assert answer.status == 200
        task, body = await run_in_thread(lambda: Task.objects.get()), answer.json
        assert answer.header("a2a-task-id") == task.public_id
        assert answer.header("a2a-context-id")
        assert body.pop("created") > 1_700_000_000
        assert body == {
            "id": f"chatcmpl-{task.public_id}",
            "object": "chat.completion",
            "model": "talker",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": "hi", "refusal": None},
                    "logprobs": None,
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        }

    async def test_joins_artifacts_and_the_last_message(self, chats: Chats) -> None:
        assert await chats.say("two") == "one\n\ntwo\n\nend"

    async def test_has_data_and_files_as_text(self, chats: Chats) -> None:
        assert await chats.say("data") == 'See:\n\n```json\n{\n  "a": 1\n}\n```'
        found = await Chats(chats.client, "talker").say("files")
        assert found == "[a.pdf](https://x.example/a.pdf)\n\n![b.png](data:image/png;base64,aGk=)"

    async def test_is_never_empty(self, chats: Chats) -> None:
        assert await chats.say("nothing") == "Done, without a text."

    async def test_has_the_usage_of_the_task(self, chats: Chats) -> None:
        answer = await chats.ask([user("use")])
        assert answer.json["usage"] == {
            "prompt_tokens": 3,
            "completion_tokens": 4,
            "total_tokens": 7,
        }

    async def test_ignores_members_that_an_agent_has_no_use_for(self, chats: Chats) -> None:
        more: dict[str, Any] = {"temperature": 0, "seed": 1, "metadata": {"a": "b"}, "store": True}
        more |= {"tools": [{"type": "function"}], "tool_choice": "auto", "n": 1, "stream": None}
        message = {**user("echo hi"), "metadata": None, "options": []}
        answer = await chats.ask([message], **more)
        assert answer.status == 200


class TestAStreamedCompletion:
    async def test_begins_with_the_role_and_ends_with_done(self, chats: Chats) -> None:
        async with chats.stream([user("echo hi")]) as stream:
            assert stream.exchange.status == 200
            assert await stream.to_the_end() == "hi"
        first, *middle, last, done = stream.chunks
        assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
        assert [chunk["choices"][0]["finish_reason"] for chunk in (first, *middle)] == [None] * (
            1 + len(middle)
        )
        assert (last["choices"][0]["delta"], last["choices"][0]["finish_reason"]) == ({}, "stop")
        assert done == "[DONE]"
        assert {chunk["object"] for chunk in stream.chunks[:-1]} == {"chat.completion.chunk"}

    async def test_has_the_usage_behind_the_last_choice_if_wanted(self, chats: Chats) -> None:
        options = {"include_usage": True}
        async with chats.stream([user("use")], stream_options=options) as stream:
            await stream.to_the_end()
        *others, last, _ = stream.chunks
        assert (last["choices"], last["usage"]["total_tokens"]) == ([], 7)
        assert all(chunk["usage"] is None for chunk in others)

    async def test_names_task_and_context_in_its_headers(self, chats: Chats) -> None:
        async with chats.stream([user("echo hi")]) as stream:
            names = dict(stream.exchange.headers)
            await stream.to_the_end()
        assert names["a2a-task-id"]
        assert names["a2a-context-id"]

    async def test_shows_each_word_when_it_is_said(self, client: Client, puppet: Puppet) -> None:
        async with Chats(client, "puppet").stream([user("go")]) as stream:
            hand = await puppet.hand()
            for word in ("a", "b\r\n ", "c"):
                hand.say(word)
                await stream.until(word)
            hand.end()
            assert await stream.to_the_end() == "ab\r\n c"

    async def test_is_kept_alive_by_empty_deltas(
        self, client: Client, puppet: Puppet, settings: Settings
    ) -> None:
        settings.A2A_KEEPALIVE_SECONDS = 0.05
        async with Chats(client, "puppet").stream([user("go")]) as stream:
            hand = await puppet.hand()
            await stream.next()
            for _ in range(2):
                chunk = await stream.next()
                assert chunk["choices"][0]["delta"] == {}
            hand.end()
            await stream.to_the_end()


class TestAnAgentThatFails:
    async def test_is_an_error_that_is_not_to_be_repeated(self, chats: Chats) -> None:
        answer = await chats.ask([user("fail")])
        assert (answer.status, answer.header("x-should-retry")) == (500, "false")
        assert answer.json["error"] == {
            "message": "The ledger is closed.",
            "type": "server_error",
            "param": None,
            "code": "agent_failed",
        }
        assert answer.header("a2a-task-id")

    async def test_that_rejects_blames_the_request(self, chats: Chats) -> None:
        answer = await chats.ask([user("reject")])
        assert (answer.status, answer.json["error"]["code"]) == (400, "agent_rejected")

    async def test_ends_a_stream_by_its_words_and_an_error(self, chats: Chats) -> None:
        async with chats.stream([user("fail")]) as stream:
            await stream.to_the_end()
        assert stream.text == "half \n\n[The agent failed: The ledger is closed.]"
        assert stream.chunks[-1]["error"]["message"] == "The ledger is closed."
        reasons = [c["choices"][0]["finish_reason"] for c in stream.chunks if "choices" in c]
        assert set(reasons) == {None}

    async def test_tells_it_by_the_error_alone_if_switched_off(
        self, chats: Chats, settings: Settings
    ) -> None:
        settings.A2A_OPENAI_TELL_FAILURES = False
        async with chats.stream([user("fail")]) as stream:
            assert await stream.to_the_end() == "half "
        assert stream.chunks[-1]["error"]["code"] == "agent_failed"

    async def test_by_a_cancel_at_another_door(self, client: Client, puppet: Puppet) -> None:
        async with Chats(client, "puppet").stream([user("go")]) as stream:
            await puppet.hand()
            task = dict(stream.exchange.headers)["a2a-task-id"]
            await client.ask("POST", f"/agents/puppet/tasks/{task}:cancel", b"{}")
            await stream.to_the_end()
        assert stream.chunks[-1]["error"]["code"] == "agent_canceled"


class TestADrain:
    async def test_ends_a_stream_by_an_error_and_its_repeat_gets_the_answer(
        self, client: Client, puppet: Puppet, life: process_lifetime.Lifetime
    ) -> None:
        chats = Chats(client, "puppet")
        async with chats.stream([user("go")]) as stream:
            hand = await puppet.hand()
            hand.say("hello")
            await stream.until("hello")
            life.begin_drain()
            await stream.to_the_end()
        assert stream.chunks[-1]["error"]["code"] == "draining"
        hand.end()
        await hand.ended()
        process_lifetime.on_drain = process_lifetime.Lifetime().on_drain
        process_lifetime.is_draining = process_lifetime.Lifetime().is_draining
        again = await chats.ask([user("go")], {"x-stainless-retry-count": "0"})
        assert again.json["choices"][0]["message"]["content"] == "hello"
        assert await count() == 1


class TestParts:
    async def test_images_files_and_sounds_go_in(self, chats: Chats) -> None:
        raw = base64.b64encode(b"x").decode()
        content = [
            {"type": "text", "text": "parts"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{raw}"}},
            {"type": "image_url", "image_url": {"url": "https://x.example/a"}},
            {
                "type": "file",
                "file": {"file_data": f"data:application/pdf;base64,{raw}", "filename": "a.pdf"},
            },
            {"type": "file", "file": {"file_data": raw, "filename": "b.csv"}},
            {"type": "input_audio", "input_audio": {"data": raw, "format": "mp3"}},
        ]
        assert (await chats.say(content)).split() == [
            "None:None:UNSET",
            f"image/png:None:{raw}",
            "image/*:None:https://x.example/a",
            f"application/pdf:a.pdf:{raw}",
            f"text/csv:b.csv:{raw}",
            f"audio/mpeg:None:{raw}",
        ]

    @pytest.mark.parametrize(
        "item",
        [
            {"type": "file", "file": {"file_id": "file-1"}},
            {"type": "image_url", "image_url": "https://x.example"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,?"}},
            {"type": "image_url", "image_url": {"url": f"data:{'x' * 256};base64,aGk="}},
            {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "x" * 250}},
            {"type": "input_audio", "input_audio": {"data": "?", "format": "wav"}},
            {"type": "text", "text": 1},
            {"type": "video"},
            {},
        ],
    )
    async def test_that_cannot_be_read_are_named(self, chats: Chats, item: Any) -> None:
        answer = await chats.ask([user("a"), user([{"type": "text", "text": "b"}, item])])
        assert answer.status == 400, answer.body
        assert answer.json["error"]["param"] == "messages[1].content[1]"
        assert await count() == 0

    async def test_instructions_are_no_text(self, chats: Chats) -> None:
        system = {"role": "system", "content": "Be brief."}
        answer = await chats.ask([system, user("instructions")])
        assert answer.json["choices"][0]["message"]["content"] == "Be brief."


class TestARefusedRequest:
    @pytest.mark.parametrize(
        ("param", "more"),
        [
            ("n", {"n": 2}),
            ("tool_choice", {"tool_choice": "required"}),
            ("tool_choice", {"tool_choice": {"type": "function"}}),
            ("response_format", {"response_format": {"type": "json_schema"}}),
            ("messages", {"messages": []}),
            ("messages", {"messages": [{"role": "assistant", "content": "a"}]}),
            ("messages[0].role", {"messages": [{"role": 1}]}),
            ("model", {"model": 1}),
        ],
    )
    async def test_is_told_which_member_it_is(
        self, chats: Chats, param: str, more: dict[str, Any]
    ) -> None:
        body = {"model": "talker", "messages": [user("echo hi")], **more}
        answer = await chats.client.post("/v1/chat/completions", body)
        error = answer.json["error"]
        assert (answer.status, error["type"], error["param"]) == (
            400,
            "invalid_request_error",
            param,
        )
        assert await count() == 0

    async def test_by_an_unknown_model(self, client: Client) -> None:
        for model in ("nobody", "no/body", "x" * 1000, ""):
            answer = await Chats(client, model).ask([user("a")])
            assert (answer.status, answer.json["error"]["code"]) == (404, "model_not_found")

    @pytest.mark.parametrize("body", [b"{", b"\xff", b"[]", b"null", b'{"a":1,"a":2}'])
    async def test_that_is_no_request(self, client: Client, body: bytes) -> None:
        answer = await client.post("/v1/chat/completions", body)
        assert answer.status == 400
        assert answer.json["error"]["type"] == "invalid_request_error"

    async def test_that_is_too_large(self, client: Client, settings: Settings) -> None:
        settings.A2A_MAX_BODY_BYTES = 1024
        answer = await client.post("/v1/chat/completions", b"x" * 2000)
        assert (answer.status, answer.json["error"]["type"]) == (413, "invalid_request_error")

    async def test_that_is_nested_too_deeply(self, chats: Chats) -> None:
        deep: Any = []
        for _ in range(100):
            deep = [deep]
        assert (await chats.ask([user("a")], metadata=deep)).status == 400

    async def test_of_a_page_of_another_site(self, client: Client) -> None:
        headers = {"content-type": "text/plain", "origin": "https://x.example"}
        answer = await client.ask("POST", "/v1/chat/completions", b"{}", headers)
        assert answer.status == 400


class TestPromptsOfAFrontEnd:
    async def test_get_an_empty_answer_and_no_task(self, chats: Chats, settings: Settings) -> None:
        settings.A2A_OPENAI_IGNORE = "### Task:, ### Other:"
        prompt = [user("### Task:\nGenerate a title")]
        assert await chats.say(prompt[0]["content"]) == ""
        async with chats.stream(prompt) as stream:
            assert await stream.to_the_end() == ""
            assert stream.chunks[-1] == "[DONE]"
        assert await count() == 0
