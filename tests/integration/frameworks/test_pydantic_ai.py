"""Agents of pydantic-ai in a host, with a model that counts its requests: real classes, unchanged."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import (
    BinaryContent,
    DeferredToolRequests,
    FilePart,
    FunctionToolset,
    ModelRequest,
    ModelResponse,
    ModelRetry,
    RunContext,
    TextPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from a2a_tasks.agents import Part, Turn, data, file
from a2a_tasks.frameworks.pydantic_ai import PydanticAIAgent
from a2a_tasks.models import Task
from a2a_tasks.protocol.errors import InvalidParams
from a2a_tasks.store.db import run_in_thread
from tests.model_server import ModelServer, serving_model
from tests.support.execution.host import (
    Client,
    client_state,
    hosting,
    listened,
    not_carried,
    take_away,
    tools_told,
)
from tests.support.execution.waiting import until
from tests.support.frameworks import (
    has_artifacts,
    has_said,
    hosted,
    send_parts,
    shown,
    status_text,
    text_of,
    trace,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.quick_on("sqlite")]


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A model server of the test's own: its counts are those of the test."""
    with serving_model() as server:
        yield server


_clients: list[Any] = []


@pytest.fixture(autouse=True)
async def closed() -> AsyncIterator[None]:
    """Close the clients of models, in the event loop of their test."""
    yield
    while _clients:
        await _clients.pop().close()


def made(model: ModelServer, *, retries: int = 0, **about: Any) -> PydanticAgent[Any, Any]:
    """An agent of pydantic-ai with the model of the server."""
    provider = OpenAIProvider(base_url=model.url, api_key="none")
    provider.client.max_retries = retries
    _clients.append(provider.client)
    kind = about.pop("kind", OpenAIChatModel)
    return PydanticAgent(kind("scripted", provider=provider), **about)


class Ledger:
    """Tools that note their calls."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def add(self, a: int, b: int) -> int:
        """Add two numbers."""
        self.calls.append((a, b))
        return a + b

    def pay(self, amount: int) -> str:
        """Pay."""
        self.calls.append(amount)
        return f"paid {amount}"

    def refuse(self, a: int) -> str:
        """Refuse odd numbers."""
        self.calls.append(a)
        if a % 2:
            raise ModelRetry("only even numbers")
        return "fine"

    def time_out(self) -> str:
        """Fail as a call to somewhere else does."""
        raise TimeoutError("elsewhere")

    def break_down(self) -> str:
        """Break."""
        raise KeyError("secret")


@pytest.fixture
def ledger() -> Ledger:
    """The tools of a test."""
    return Ledger()


def paying(model: ModelServer, ledger: Ledger, **about: Any) -> PydanticAgent[Any, Any]:
    """An agent that pays after approval."""
    agent = made(model, output_type=[str, DeferredToolRequests], **about)
    agent.tool_plain(requires_approval=True)(ledger.pay)
    return agent


PAY = 'CALL pay {"amount": 7}\nSAY it is done: $RESULT'


class TestStreaming:
    @pytest.mark.parametrize("kind", [OpenAIChatModel, OpenAIResponsesModel])
    async def test_words_come_while_the_model_speaks(self, model: ModelServer, kind: Any) -> None:
        with hosted(made(model, kind=kind)) as agent:
            async with hosting():
                stream = await Client(agent).stream("SLOW 0.15 + SAY 1 2 3 4 5 6 7 8 WAIT 9")
                lines: list[str] = []
                async for batch in stream.batches(0.5):
                    lines += [shown(msgspec.json.decode(event.body)) for event in batch or ()]
                    if len(lines) > 5 and model.of("running"):
                        model.release()
                await stream.close()
        assert lines[:2] == ["working", "artifact answer: 1"]
        assert len(lines) > 6
        said = [line.partition(":")[2] or line.partition("+")[2] for line in lines[1:-1]]
        assert "".join(said).replace("(last)", "").split() == list("123456789")
        assert lines[-1] == "completed"
        assert model.counts["requests"] == 1

    async def test_each_answer_of_the_model_is_an_artifact(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        with hosted(made(model, tools=[ledger.add])) as agent:
            async with hosting():
                script = 'SAY let me see + CALL add {"a": 1, "b": 2}\nSAY it is $RESULT'
                client = Client(agent)
                task = await client.send(script)
                assert text_of(task) == ["let me see", "it is 3"]
                assert (await client.states(task.id), ledger.calls) == ("completed", [(1, 2)])

    async def test_an_agent_that_does_not_stream_answers_whole(self, model: ModelServer) -> None:
        def answer(messages: Any, info: AgentInfo) -> Any:
            return ModelResponse(parts=[TextPart("all of it")])

        with hosted(PydanticAgent(FunctionModel(answer)), streaming=False) as agent:
            async with hosting():
                assert text_of(await Client(agent).send("hello")) == ["all of it"]

    async def test_an_output_that_the_agent_changes_is_an_artifact_of_its_own(
        self, model: ModelServer
    ) -> None:
        thing = made(model)
        thing.output_validator(lambda said: said.upper())
        with hosted(thing) as agent:
            async with hosting():
                assert text_of(await Client(agent).send("SAY quiet")) == ["quiet", "QUIET"]


class City(BaseModel):
    """A city."""

    name: str
    people: int


class TestContent:
    async def test_a_structured_output_is_data_with_its_schema(self, model: ModelServer) -> None:
        with hosted(made(model, output_type=City)) as agent:
            async with hosting():
                script = 'CALL final_result {"name": "Bern", "people": 7}'
                task = await Client(agent).send(script)
        (artifact,) = [msgspec.json.decode(body) for body in task.artifacts or ()]
        assert artifact["parts"] == [{"data": {"name": "Bern", "people": 7}}]
        assert artifact["metadata"]["schema"]["properties"]["people"]["type"] == "integer"

    async def test_files_and_data_reach_the_model_and_large_ones_are_not_kept(
        self, model: ModelServer
    ) -> None:
        heard: list[Any] = []

        def answer(messages: Any, info: AgentInfo) -> Any:
            heard.append(messages)
            picture = BinaryContent(b"png", media_type="image/png")
            return ModelResponse(parts=[TextPart("seen"), FilePart(picture)])

        large = b"x" * 600_000
        modes = ("text/plain", "application/json", "image/*")
        about: dict[str, Any] = {"streaming": False, "default_input_modes": modes}
        with hosted(PydanticAgent(FunctionModel(answer)), **about) as agent:
            async with hosting():
                client = Client(agent)
                parts = (Part(text="look"), data({"n": 1}), file(large, "a.bin", "image/png"))
                task = await send_parts(client, *parts)
                assert text_of(task)[0] == "seen"
                picture = msgspec.json.decode(task.artifacts[1])["parts"][0]
                assert (picture["mediaType"], "url" in picture or "raw" in picture) == (
                    "image/png",
                    True,
                )
                await client.send("again", context_id=task.context_id)
        first, second = heard
        assert isinstance(first[0], ModelRequest)
        (prompt,) = [part for part in first[0].parts if isinstance(part, UserPromptPart)]
        assert prompt.content[0] == "look"
        assert prompt.content[1] == '{"n":1}'
        assert isinstance(prompt.content[2], BinaryContent)
        assert prompt.content[2].data == large
        (kept,) = [part for part in second[0].parts if isinstance(part, UserPromptPart)]
        assert kept.content[2] == "[A file of type image/png with 600000 bytes was here.]"

    async def test_tools_reach_the_turn_as_their_dependencies(self, model: ModelServer) -> None:
        def who(ctx: RunContext[Turn]) -> str:
            return ctx.deps.caller.principal

        with hosted(made(model, tools=[who])) as agent:
            async with hosting():
                task = await Client(agent).send("CALL who\nSAY you are $RESULT")
        assert text_of(task) == ["you are user:alice"]


class TestToolEvents:
    async def test_each_call_is_told_once_though_the_framework_tells_of_an_approved_one_again(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        with hosted(paying(model, ledger)) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.send(PAY)
                (call,) = await run_in_thread(tools_told, task.id)
                await client.send("yes", task_id=task.id)
        (id_,) = {call["toolCall"]["id"]}
        assert call == {"toolCall": {"id": id_, "name": "pay", "arguments": {"amount": 7}}}
        assert await run_in_thread(tools_told, task.id) == [
            call,
            {"toolResult": {"id": id_, "content": "paid 7", "error": False}},
        ]

    async def test_what_a_tool_refuses_is_an_error(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        with hosted(made(model, tools=[ledger.refuse])) as agent:
            async with hosting():
                task = await Client(agent).send('CALL refuse {"a": 1}\nSAY well')
        _, result = await run_in_thread(tools_told, task.id)
        assert result["toolResult"]["error"]
        assert "only even numbers" in result["toolResult"]["content"]


class TestUsage:
    async def test_it_is_what_the_model_server_counts_over_tools_and_turns(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        with hosted(paying(model, ledger)) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.send(PAY)
                await client.send("yes", task_id=task.id)
        assert ledger.calls == [7]
        row = await run_in_thread(Task.objects.get, public_id=task.id)
        ((name, used),) = msgspec.json.decode(row.usage).items()
        counts = model.counts
        assert name == "scripted"
        assert used["requests"] == counts["requests"] == 2
        assert used["inputTokens"] == counts["input_tokens"]
        assert used["outputTokens"] == counts["output_tokens"]


class TestMemory:
    async def test_the_second_task_of_a_conversation_knows_the_first(
        self, model: ModelServer
    ) -> None:
        with hosted(made(model)) as agent:
            async with hosting():
                client = Client(agent)
                first = await client.send("SAY I heard $USERS")
            async with hosting():  # another runner: nothing is kept in the process
                second = await client.send("SAY I heard $USERS", context_id=first.context_id)
                other = await client.send("SAY I heard $USERS")
        assert [text_of(task) for task in (first, second, other)] == [
            ["I heard 1"],
            ["I heard 2"],
            ["I heard 1"],
        ]

    async def test_a_failed_turn_leaves_no_message(self, model: ModelServer) -> None:
        with hosted(made(model)) as agent:
            async with hosting():
                client = Client(agent)
                first = await client.send("FAIL 500")
                second = await client.send("SAY I heard $USERS", context_id=first.context_id)
        assert first.status.state.word == "failed"
        assert text_of(second) == ["I heard 1"]


class TestApproval:
    async def test_the_answer_goes_to_a_process_that_did_not_ask(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        with hosted(paying(model, ledger)) as agent:
            client = Client(agent)
            async with hosting():
                asked = await client.send(PAY)
                assert (asked.status.state.word, ledger.calls) == ("input-required", [])
                question = msgspec.json.decode(asked.status.message or b"")["parts"]
                assert question[0]["text"] == "May I call pay(amount=7)? Please answer yes or no."
                (approval,) = question[1]["data"]["calls"]
                assert (approval["tool"], approval["arguments"]) == ("pay", {"amount": 7})
            async with hosting():
                done = await client.send("yes", task_id=asked.id)
        assert (text_of(done), ledger.calls) == (["it is done: paid 7"], [7])
        assert model.counts["requests"] == 2

    async def test_no_is_told_to_the_model_with_its_reason(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        with hosted(paying(model, ledger)) as agent:
            async with hosting():
                client = Client(agent)
                asked = await client.send(PAY)
                done = await client.send("No, too much", task_id=asked.id)
        assert (text_of(done), ledger.calls) == (["it is done: No, too much"], [])

    async def test_an_answer_that_does_not_fit_is_refused(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        with hosted(paying(model, ledger)) as agent:
            async with hosting():
                client = Client(agent)
                asked = await client.send(PAY)
                with pytest.raises(InvalidParams) as refused:
                    await client.send("why?", task_id=asked.id)
                assert "must be yes or no" in refused.value.violations[0][1]
                assert await client.states(asked.id) == "input-required"
                done = await client.send("ok", task_id=asked.id)
        assert (done.status.state.word, ledger.calls, model.counts["requests"]) == (
            "completed",
            [7],
            2,
        )

    async def test_a_program_answers_by_data_and_is_told_the_member_that_does_not_fit(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        with hosted(paying(model, ledger)) as agent:
            async with hosting():
                client = Client(agent)
                script = 'CALL pay {"amount": 7} + CALL pay {"amount": 8}\nSAY done'
                asked = await client.send(script)
                question = msgspec.json.decode(asked.status.message or b"")["parts"][1]["data"]
                first, second = (call["id"] for call in question["calls"])
                for answer, field, fault in [
                    ({first: "yes", second: False}, f".{first}", "'yes' is not of type"),
                    ({first: True}, f".{second}", "is missing"),
                    ({first: True, second: {"approved": 1}}, f".{second}.approved", "1 is not"),
                    (1, "", "1 is not of type 'object'"),
                ]:
                    with pytest.raises(InvalidParams) as refused:
                        await send_parts(client, data(answer), task_id=asked.id)
                    ((path, text),) = refused.value.violations
                    assert path == f"message.parts[0].data{field}"
                    assert text.startswith(fault)
                approved = {first: {"approved": True, "arguments": {"amount": 9}}, second: False}
                done = await send_parts(client, data(approved), task_id=asked.id)
        assert (text_of(done), ledger.calls) == (["done"], [9])

    async def test_other_tasks_of_the_conversation_go_on_while_one_waits(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        with hosted(paying(model, ledger)) as agent:
            async with hosting():
                client = Client(agent)
                asked = await client.send(PAY)
                other = await client.send("SAY I heard $USERS", context_id=asked.context_id)
                done = await client.send("yes", task_id=asked.id)
                last = await client.send("SAY I heard $USERS", context_id=asked.context_id)
        assert [text_of(task)[0] for task in (other, done, last)] == [
            "I heard 1",
            "it is done: paid 7",
            "I heard 3",
        ]


class TestTrouble:
    @pytest.mark.parametrize(
        ("script", "words"),
        [
            ("FAIL 429", "The model is busy. Please try again later."),
            ("FAIL 401", "The model cannot be used at present."),
            ("FAIL 400", "The model refused the request."),
            ("FAIL 500", "The model did not answer. Please try again later."),
            ("GARBAGE", "The model gave an answer that cannot be used."),
            ("CALL no_such_tool", "The model gave an answer that cannot be used."),
        ],
    )
    async def test_it_fails_in_words_for_people_with_a_trace_for_operators(
        self, model: ModelServer, script: str, words: str
    ) -> None:
        with hosted(made(model)) as agent:
            async with hosting():
                task = await Client(agent).send(script)
        assert (task.status.state.word, status_text(task)) == ("failed", words)
        assert "pydantic_ai" in await trace()

    async def test_what_the_client_of_the_model_repeats_succeeds(self, model: ModelServer) -> None:
        with hosted(made(model, retries=1)) as agent:
            async with hosting():
                task = await Client(agent).send("FAIL 503 1 + SAY after all")
        assert text_of(task) == ["after all"]
        assert [one.state for one in model.exchanges] == ["failed", "finished"]

    async def test_a_model_that_never_answers_is_given_up(self, model: ModelServer) -> None:
        with hosted(made(model), model_seconds=0.3) as agent:
            async with hosting():
                task = await Client(agent).send("NEVER")
                assert status_text(task) == "The model did not answer. Please try again later."
                await until(lambda: model.of("left"))

    async def test_slow_words_are_no_silence(self, model: ModelServer) -> None:
        with hosted(made(model), model_seconds=1.0) as agent:
            async with hosting():
                task = await Client(agent).send("SLOW 0.2 + SAY 1 2 3 4 5 6 7 8")
        assert text_of(task) == ["1 2 3 4 5 6 7 8"]

    async def test_a_tool_may_ask_the_model_to_try_again(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        with hosted(made(model, tools=[ledger.refuse])) as agent:
            async with hosting():
                script = 'CALL refuse {"a": 1}\nCALL refuse {"a": 2}\nSAY $RESULT'
                assert text_of(await Client(agent).send(script)) == ["fine"]
        assert ledger.calls == [1, 2]

    @pytest.mark.parametrize(
        ("tool", "fault"), [("break_down", "KeyError: 'secret'"), ("time_out", "TimeoutError")]
    )
    async def test_a_tool_that_breaks_fails_the_run_as_in_the_framework(
        self, model: ModelServer, ledger: Ledger, tool: str, fault: str
    ) -> None:
        with hosted(made(model, tools=[getattr(ledger, tool)])) as agent:
            async with hosting():
                task = await Client(agent).send(f"CALL {tool}\nSAY never")
        assert status_text(task) == "The agent failed."
        assert fault in await trace()


class TestCancelling:
    async def test_it_stops_the_request_of_the_model_within_a_second(
        self, model: ModelServer
    ) -> None:
        with hosted(made(model)) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.begin("SAY 1 2 WAIT 3")
                await until(lambda: has_artifacts(client, task.id))
                at = time.monotonic()
                await client.cancel(task.id)
                await until(lambda: model.of("left"))
                assert time.monotonic() - at < 1
                await until(not_carried)
                assert await client_state(client, task.id, "canceled")


class TestAnotherAttempt:
    async def test_repeats_no_call_whose_result_was_used_and_no_text(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        """The run is taken away in the middle of the third answer, as if its process had died."""
        script = (
            'SAY first + CALL add {"a": 1, "b": 2} + CALL add {"a": 3, "b": 4}\n'
            'SAY second + CALL add {"a": 5, "b": 6}\nSAY third WAIT and last'
        )
        with hosted(made(model, tools=[ledger.add])) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.begin(script)
                await until(lambda: has_said(client, task.id, "third"))
                await run_in_thread(take_away, task.id)
                await until(lambda: model.of("left"))
                stream = await client.subscribe(task.id)
                model.release()
                lines = [shown(msgspec.json.decode(e.body)) for e in await listened(stream)]
                await until(lambda: client_state(client, task.id, "completed"))
                assert text_of(await client.get(task.id)) == ["first", "second", "third and last"]
        assert [one.line for one in model.exchanges] == [0, 1, 2, 2]
        assert sorted(ledger.calls) == [(1, 2), (3, 4), (5, 6)]
        assert not [line for line in lines if "first" in line or "second" in line]


class TestChecks:
    def test_toolsets_need_an_id(self, ledger: Ledger) -> None:
        toolset = FunctionToolset([ledger.add])
        thing = PydanticAgent("test", toolsets=[toolset])
        with hosted(thing) as agent:
            (fault,) = agent.check()
        assert fault.id == "a2a_tasks.E051"
        assert "need to have a unique `id`" in fault.msg

    def test_an_agent_is_in_order(self) -> None:
        with hosted(PydanticAgent("test")) as agent:
            assert list(agent.check()) == []

    def test_it_needs_a_model(self) -> None:
        with hosted(PydanticAgent()) as agent:
            (fault,) = agent.check()
        assert "needs to have a `model`" in fault.msg

    def test_another_thing_is_no_agent(self) -> None:
        class Wrong(PydanticAIAgent, abstract=True):
            agent = "text"

        found = [check.msg for check in Wrong().check() if check.id == "a2a_tasks.E051"]
        assert found == ["agent is a str, not an agent of pydantic-ai"]
