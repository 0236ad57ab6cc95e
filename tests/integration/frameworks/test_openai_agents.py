"""Agents of the OpenAI Agents SDK in a host, with a model that counts its requests: real classes, unchanged."""

from __future__ import annotations

import copy
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    RunContextWrapper,
    Runner,
    ToolOutputText,
    function_tool,
    handoff,
    input_guardrail,
)
from agents.models.multi_provider import MultiProvider
from agents.tracing import TracingProcessor, set_trace_processors
from openai import AsyncOpenAI
from pydantic import BaseModel

from a2a_tasks.agents import Part, Turn, data, file
from a2a_tasks.frameworks.openai_agents import OpenAIAgentsAgent
from a2a_tasks.models import ConversationItem, Task
from a2a_tasks.store.db import run_in_thread
from tests.model_server import ModelServer, serving_model
from tests.support.execution.host import (
    Client,
    client_state,
    hosting,
    listened,
    not_carried,
    take_away,
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


_clients: list[AsyncOpenAI] = []


@pytest.fixture(autouse=True)
async def closed() -> AsyncIterator[None]:
    """Close the clients of models, in the event loop of their test."""
    yield
    while _clients:
        await _clients.pop().close()


def model_of(server: ModelServer, name: str = "scripted", **about: Any) -> Any:
    """A model of the server."""
    client = AsyncOpenAI(base_url=server.url, api_key="none", max_retries=about.pop("retries", 0))
    _clients.append(client)
    return about.pop("kind", OpenAIChatCompletionsModel)(name, openai_client=client)


def made(server: ModelServer, **about: Any) -> Agent[Any]:
    """An agent with the model of the server."""
    given = {key: about.pop(key) for key in ("kind", "retries") if key in about}
    return Agent("Helper", **{"model": model_of(server, **given), **about})


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

    def break_down(self) -> str:
        """Break."""
        self.calls.append("broken")
        raise KeyError("elsewhere")


@pytest.fixture
def ledger() -> Ledger:
    """The tools of a test."""
    return Ledger()


def paying(server: ModelServer, ledger: Ledger, **about: Any) -> Agent[Any]:
    """An agent that pays after approval."""
    return made(server, tools=[function_tool(ledger.pay, needs_approval=True)], **about)


PAY = 'CALL pay {"amount": 7}\nSAY it is done: $RESULT'


async def usage_of(task: Any) -> dict[str, Any]:
    """The usage of a task by model."""
    row = await run_in_thread(Task.objects.get, public_id=task.id)
    found: dict[str, Any] = msgspec.json.decode(row.usage)
    return found


class TestStreaming:
    @pytest.mark.parametrize("kind", [OpenAIChatCompletionsModel, OpenAIResponsesModel])
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

    @pytest.mark.parametrize("streaming", [True, False])
    async def test_each_answer_of_the_model_is_an_artifact(
        self, model: ModelServer, ledger: Ledger, *, streaming: bool
    ) -> None:
        thing = made(model, tools=[function_tool(ledger.add)])
        before = copy.copy(thing)
        with hosted(thing, streaming=streaming) as agent:
            async with hosting():
                script = 'SAY let me see + CALL add {"a": 1, "b": 2}\nSAY it is $RESULT'
                client = Client(agent)
                task = await client.send(script)
                assert text_of(task) == ["let me see", "it is 3"]
                assert (await client.states(task.id), ledger.calls) == ("completed", [(1, 2)])
        assert vars(thing) == vars(before)

    async def test_a_tool_whose_result_is_the_output_has_an_artifact(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        tools = [function_tool(ledger.pay)]
        with hosted(made(model, tools=tools, tool_use_behavior="stop_on_first_tool")) as agent:
            async with hosting():
                assert text_of(await Client(agent).send(PAY)) == ["paid 7"]

    async def test_agents_hand_over_with_models_and_tools_of_their_own(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        billing = Agent(
            "Billing",
            model=model_of(model, "expert", kind=OpenAIResponsesModel),
            tools=[function_tool(ledger.pay)],
        )
        with hosted(made(model, handoffs=[handoff(billing)])) as agent:
            async with hosting():
                script = (
                    'SAY a moment + CALL transfer_to_billing\nCALL pay {"amount": 7}\nSAY $RESULT'
                )
                task = await Client(agent).send(script)
        assert (text_of(task), ledger.calls) == (["a moment", "paid 7"], [7])
        used = await usage_of(task)
        assert {name: one["requests"] for name, one in used.items()} == {
            "scripted": 1,
            "expert": 2,
        }


class City(BaseModel):
    """A city."""

    name: str
    people: int


class TestContent:
    async def test_a_structured_output_is_data_with_its_schema(self, model: ModelServer) -> None:
        with hosted(made(model, output_type=City)) as agent:
            async with hosting():
                task = await Client(agent).send('SAY {"name": "Bern", "people": 7}')
        (artifact,) = [msgspec.json.decode(body) for body in task.artifacts or ()]
        assert artifact["parts"] == [{"data": {"name": "Bern", "people": 7}}]
        assert artifact["metadata"]["schema"]["properties"]["people"]["type"] == "integer"

    async def test_a_list_is_data_as_well(self, model: ModelServer) -> None:
        with hosted(made(model, output_type=list[City])) as agent:
            async with hosting():
                script = 'SAY {"response": [{"name": "Bern", "people": 7}]}'
                task = await Client(agent).send(script)
        (artifact,) = [msgspec.json.decode(body) for body in task.artifacts or ()]
        assert artifact["parts"] == [{"data": [{"name": "Bern", "people": 7}]}]
        assert artifact["metadata"]["schema"]["type"] == "array"

    async def test_files_and_data_reach_the_model_and_large_ones_are_not_kept(
        self, model: ModelServer
    ) -> None:
        modes = ("text/plain", "application/json", "image/*", "application/pdf")
        with hosted(made(model, kind=OpenAIResponsesModel), default_input_modes=modes) as agent:
            async with hosting():
                client = Client(agent)
                parts = (
                    Part(text="look"),
                    data({"n": 1}),
                    file(b"x" * 600_000, "a.png", "image/png"),
                    file(b"pdf", "b.pdf", "application/pdf"),
                )
                task = await send_parts(client, *parts)
                said = 'You said: look {"n":1} <input_image> <input_file>'
                assert text_of(task) == [said]
                assert [one.prompt for one in model.exchanges] == [
                    'look\n{"n":1}\n<input_image>\n<input_file>'
                ]
        items = await run_in_thread(lambda: list(ConversationItem.objects.order_by("number")))
        content = msgspec.json.decode(items[0].value)["content"]
        note = "[A file of type image/png with 600000 bytes was here.]"
        assert content[2] == {"type": "input_text", "text": note}
        assert len(items) == 2

    async def test_tools_reach_the_turn_as_their_context(self, model: ModelServer) -> None:
        @function_tool
        def who(wrapper: RunContextWrapper[Turn]) -> str:
            return wrapper.context.caller.principal

        with hosted(made(model, tools=[who])) as agent:
            async with hosting():
                task = await Client(agent).send("CALL who\nSAY you are $RESULT")
        assert text_of(task) == ["you are user:alice"]

    async def test_results_of_tools_are_told_to_the_model_as_the_framework_does(
        self, model: ModelServer
    ) -> None:
        results = {"pair": (1, 2), "city": City(name="Bern", people=7), "map": {"a": [1, None]}}

        @function_tool
        def find(key: str) -> Any:
            """Find."""
            return ToolOutputText(text="apart") if key == "text" else results[key]

        with hosted(made(model, tools=[find])) as agent:
            async with hosting():
                script = 'CALL find {{"key": "{}"}}\nSAY $RESULT'
                client = Client(agent)
                told = [text_of(await client.send(script.format(key)))[0] for key in results]
                assert text_of(await client.send(script.format("text"))) == ["apart"]
        assert told == [str(result) for result in results.values()]


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
        ((name, used),) = (await usage_of(task)).items()
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
    @pytest.mark.parametrize("kind", [OpenAIChatCompletionsModel, OpenAIResponsesModel])
    async def test_the_answer_goes_to_a_process_that_did_not_ask(
        self, model: ModelServer, ledger: Ledger, kind: Any
    ) -> None:
        with hosted(paying(model, ledger, kind=kind)) as agent:
            client = Client(agent)
            async with hosting():
                asked = await client.send(PAY)
                assert (asked.status.state.word, ledger.calls) == ("input-required", [])
                question = msgspec.json.decode(asked.status.message or b"")["parts"]
                assert question[0]["text"] == "May I call pay(amount=7)? Please answer yes or no."
                (approval,) = question[1]["data"]["approvals"]
                assert (approval["tool"], approval["arguments"]) == ("pay", {"amount": 7})
            async with hosting():
                done = await client.send("yes", task_id=asked.id)
        assert (text_of(done), ledger.calls) == (["it is done: paid 7"], [7])
        assert model.counts["requests"] == 2
        items = await run_in_thread(lambda: list(ConversationItem.objects.order_by("number")))
        kept = [msgspec.json.decode(item.value) for item in items]
        assert [item.get("type") or item["role"] for item in kept] == [
            "user",
            "function_call",
            "function_call_output",
            "message",
        ]

    async def test_no_is_told_to_the_model_with_its_reason(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        with hosted(paying(model, ledger)) as agent:
            async with hosting():
                client = Client(agent)
                asked = await client.send(PAY)
                done = await client.send("No, too much", task_id=asked.id)
        assert (text_of(done), ledger.calls) == (["it is done: No, too much"], [])

    async def test_a_program_answers_by_data_and_is_told_the_member_that_does_not_fit(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        with hosted(paying(model, ledger)) as agent:
            async with hosting():
                client = Client(agent)
                script = 'CALL pay {"amount": 7} + CALL pay {"amount": 8}\nSAY done'
                asked = await client.send(script)
                question = msgspec.json.decode(asked.status.message or b"")["parts"][1]["data"]
                first, second = (approval["id"] for approval in question["approvals"])
                approvals: dict[str, Any] = {first: {"approved": "yes"}, second: False}
                for answer, fault in [
                    ({"approvals": approvals}, f"approvals.{first} must be true, false"),
                    ({"approvals": {first: True}}, f"approvals.{second} is missing"),
                    ({"approvals": {"x": True}}, "approvals.x was not asked"),
                    ({"form": 1}, "The data must be an object with approvals"),
                ]:
                    again = await send_parts(client, data(answer), task_id=asked.id)
                    assert status_text(again).startswith(fault)
                again = await client.send("why?", task_id=asked.id)
                assert status_text(again).startswith("I did not understand the answer. May I")
                approvals[first] = True
                done = await send_parts(client, data({"approvals": approvals}), task_id=asked.id)
        assert (text_of(done), ledger.calls) == (["done"], [7])

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

    async def test_an_agent_that_is_a_tool_asks_through_the_agent_that_uses_it(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        payer = paying(model, ledger).as_tool("payer", "Pays")
        with hosted(made(model, tools=[payer])) as agent:
            client = Client(agent)
            within = 'CALL pay {\\"amount\\": 7}\\nSAY $RESULT'
            async with hosting():
                asked = await client.send(f'CALL payer {{"input": "{within}"}}\nSAY so: $RESULT')
                assert status_text(asked).startswith("May I call pay(amount=7)?")
            async with hosting():
                done = await client.send("yes", task_id=asked.id)
        assert (text_of(done), ledger.calls) == (["so: paid 7"], [7])
        used = await usage_of(done)
        assert used["scripted"]["requests"] == model.counts["requests"] == 4

    async def test_so_does_an_agent_that_was_handed_over_to(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        payer = paying(model, ledger).clone(name="Payer")
        with hosted(made(model, handoffs=[payer])) as agent:
            client = Client(agent)
            async with hosting():
                asked = await client.send(f"CALL transfer_to_payer\n{PAY}")
                assert status_text(asked).startswith("May I call pay(amount=7)?")
            async with hosting():
                done = await client.send("yes", task_id=asked.id)
        assert (text_of(done), ledger.calls) == (["it is done: paid 7"], [7])
        used = await usage_of(done)
        assert used["scripted"]["requests"] == model.counts["requests"] == 3

    async def test_a_policy_that_does_not_see_all_arguments_asks(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        async def is_much(wrapper: Any, arguments: dict[str, Any], call: str) -> bool:
            return int(arguments.get("amount", 0)) > 50

        @function_tool(needs_approval=is_much, strict_mode=False)
        def pay(amount: int = 100) -> str:
            """Pay."""
            return ledger.pay(amount)

        with hosted(made(model, tools=[pay])) as agent:
            async with hosting():
                client = Client(agent)
                assert text_of(await client.send('CALL pay {"amount": 7}\nSAY ok')) == ["ok"]
                asked = await client.send("CALL pay {}\nSAY never")
        assert (asked.status.state.word, ledger.calls) == ("input-required", [7])


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
    @pytest.mark.parametrize("streaming", [True, False])
    async def test_it_fails_in_words_for_people_with_a_trace_for_operators(
        self, model: ModelServer, script: str, words: str, *, streaming: bool
    ) -> None:
        with hosted(made(model), streaming=streaming) as agent:
            async with hosting():
                task = await Client(agent).send(script)
        assert (task.status.state.word, status_text(task)) == ("failed", words)
        assert "openai_agents" in await trace()

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

    async def test_a_tool_that_breaks_is_told_to_the_model_as_in_the_framework(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        tool = function_tool(ledger.break_down)
        strict = function_tool(
            ledger.break_down, name_override="strict", failure_error_function=None
        )
        with hosted(made(model, tools=[tool, strict])) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.send("CALL break_down\nSAY $RESULT")
                assert text_of(task)[0].startswith("An error occurred while running the tool.")
                failed = await client.send("CALL strict\nSAY never")
        assert status_text(failed) == "The agent failed."
        assert "KeyError: 'elsewhere'" in await trace()

    async def test_a_run_that_asks_too_often_fails(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        with hosted(made(model, tools=[function_tool(ledger.add)]), max_turns=2) as agent:
            async with hosting():
                task = await Client(agent).send('CALL add {"a": 1, "b": 2}')
        assert status_text(task) == "This message needs more of the model than one message may use."
        assert model.counts["requests"] == 2

    async def test_a_guardrail_is_a_run_within_and_stops_the_agent(
        self, model: ModelServer
    ) -> None:
        judge = Agent("Judge", model=model_of(model, "judge"))

        @input_guardrail
        async def is_fine(wrapper: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
            found = await Runner.run(judge, "SAY fine")
            return GuardrailFunctionOutput(found.final_output, "bad" in str(given))

        with hosted(made(model, input_guardrails=[is_fine])) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.send("SAY hello")
                assert text_of(task) == ["hello"]
                assert (await usage_of(task))["judge"]["requests"] == 1
                stopped = await client.send("SAY bad")
        assert status_text(stopped) == "The agent does not answer this."


class Traces(TracingProcessor):
    """Notes the traces that would be exported."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_trace_start(self, trace: Any) -> None:
        self.names.append(trace.name)

    def on_trace_end(self, trace: Any) -> None:
        """Do nothing."""

    def on_span_start(self, span: Any) -> None:
        """Do nothing."""

    def on_span_end(self, span: Any) -> None:
        """Do nothing."""

    def shutdown(self) -> None:
        """Do nothing."""

    def force_flush(self) -> None:
        """Do nothing."""


class TestConfiguration:
    @pytest.mark.parametrize(("asked", "names"), [(False, []), (True, ["Agent workflow"])])
    async def test_traces_are_exported_only_if_the_class_asks_for_it(
        self, model: ModelServer, *, asked: bool, names: list[str]
    ) -> None:
        traces = Traces()
        set_trace_processors([traces])
        try:
            with hosted(made(model), exports_traces=asked) as agent:
                async with hosting():
                    await Client(agent).send("SAY hello")
        finally:
            set_trace_processors([])
        assert traces.names == names

    async def test_models_are_named_by_a_provider_of_the_run(self, model: ModelServer) -> None:
        client = model_of(model)._client
        provider = MultiProvider(openai_client=client, openai_use_responses=False)
        config = RunConfig(model_provider=provider, model_settings=ModelSettings(temperature=0))
        with hosted(Agent("Helper", model="named"), run_config=config) as agent:
            async with hosting():
                task = await Client(agent).send("SAY hello")
        assert text_of(task) == ["hello"]
        assert list(await usage_of(task)) == ["named"]


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
            'SAY first + CALL add {"a": 1, "b": 2} + CALL add {"a": 3, "b": 4} + CALL break_down\n'
            "SAY second + CALL transfer_to_expert\nSAY third WAIT and last"
        )
        tools = [function_tool(ledger.add), function_tool(ledger.break_down)]
        expert = Agent("Expert", model=model_of(model, "expert"))
        with hosted(made(model, tools=tools, handoffs=[expert])) as agent:
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
        assert sorted(map(str, ledger.calls)) == ["(1, 2)", "(3, 4)", "broken"]
        assert not [line for line in lines if "first" in line or "second" in line]
        used = await usage_of(task)
        assert {name: one["requests"] for name, one in used.items()} == {
            "scripted": 2,
            "expert": 1,
        }

    async def test_agents_that_are_tools_take_steps_of_their_own_side_by_side(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        worker = made(model, tools=[function_tool(ledger.add)]).as_tool("worker", "Works")
        within = '"CALL add {{\\"a\\": {0}, \\"b\\": {0}}}\\nSAY $RESULT"'
        calls = " + ".join(f'CALL worker {{"input": {within.format(n)}}}' for n in (1, 2))
        with hosted(made(model, tools=[worker])) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.begin(f"{calls}\nSAY then WAIT done")
                await until(lambda: has_said(client, task.id, "then"))
                await run_in_thread(take_away, task.id)
                await until(lambda: model.of("left"))
                model.release()
                await until(lambda: client_state(client, task.id, "completed"))
                assert text_of(await client.get(task.id)) == ["then done"]
        assert sorted(ledger.calls) == [(1, 1), (2, 2)]
        assert model.counts["requests"] == 7
        assert (await usage_of(task))["scripted"]["requests"] == 6


class TestChecks:
    def test_an_agent_is_in_order(self) -> None:
        with hosted(Agent("Helper")) as agent:
            assert list(agent.check()) == []

    def test_another_thing_is_no_agent(self) -> None:
        class Wrong(OpenAIAgentsAgent, abstract=True):
            agent = "text"

        found = [check.msg for check in Wrong().check() if check.id == "a2a_tasks.E051"]
        assert found == ["agent is a str, not an agent of the OpenAI Agents SDK"]
