"""Agents of the OpenAI Agents SDK in a host, with a model that counts its requests: real classes, unchanged."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    ModelSettings,
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

from a2a_tasks.agents import Part, Turn, data, file
from a2a_tasks.models import ConversationItem
from a2a_tasks.store.db import run_in_thread
from tests.model_server import ModelServer
from tests.support.execution.host import Client, client_state, hosting, take_away, tools_told
from tests.support.execution.waiting import until
from tests.support.frameworks import (
    PAY,
    has_said,
    hosted,
    send_parts,
    status_text,
    text_of,
    trace,
    usage_of,
)
from tests.support.model_frameworks import OPENAI_AGENTS, RESPONSES, City, Ledger

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]


@pytest.fixture
def ledger() -> Ledger:
    """The tools of a test."""
    return Ledger()


class TestStreaming:
    async def test_a_tool_whose_result_is_the_output_has_an_artifact(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        with hosted(
            OPENAI_AGENTS.make(model, ledger.pay, tool_use_behavior="stop_on_first_tool")
        ) as agent:
            async with hosting():
                assert text_of(await Client(agent).send(PAY)) == ["paid 7"]

    async def test_agents_hand_over_with_models_and_tools_of_their_own(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        billing = Agent(
            "Billing",
            model=RESPONSES[1].model(model, "expert"),
            tools=[function_tool(ledger.pay)],
        )
        with hosted(OPENAI_AGENTS.make(model, handoffs=[handoff(billing)])) as agent:
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


class TestContent:
    async def test_a_structured_output_is_data_with_its_schema(self, model: ModelServer) -> None:
        with hosted(OPENAI_AGENTS.make(model, output_type=City)) as agent:
            async with hosting():
                task = await Client(agent).send('SAY {"name": "Bern", "people": 7}')
        (artifact,) = [msgspec.json.decode(body) for body in task.artifacts or ()]
        assert artifact["parts"] == [{"data": {"name": "Bern", "people": 7}}]
        assert artifact["metadata"]["schema"]["properties"]["people"]["type"] == "integer"

    async def test_a_list_is_data_as_well(self, model: ModelServer) -> None:
        with hosted(OPENAI_AGENTS.make(model, output_type=list[City])) as agent:
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
        with hosted(RESPONSES[1].make(model), default_input_modes=modes) as agent:
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

        with hosted(OPENAI_AGENTS.make(model, tools=[who])) as agent:
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

        with hosted(OPENAI_AGENTS.make(model, tools=[find])) as agent:
            async with hosting():
                script = 'CALL find {{"key": "{}"}}\nSAY $RESULT'
                client = Client(agent)
                told = [text_of(await client.send(script.format(key)))[0] for key in results]
                assert text_of(await client.send(script.format("text"))) == ["apart"]
        assert told == [str(result) for result in results.values()]


class TestApproval:
    async def test_an_agent_that_is_a_tool_asks_through_the_agent_that_uses_it(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        payer = OPENAI_AGENTS.make(model, approved=[ledger.pay]).as_tool("payer", "Pays")
        with hosted(OPENAI_AGENTS.make(model, tools=[payer])) as agent:
            client = Client(agent)
            within = 'CALL pay {\\"amount\\": 7}\\nSAY $RESULT'
            async with hosting():
                asked = await client.send(f'CALL payer {{"input": "{within}"}}\nSAY so: $RESULT')
                assert status_text(asked).startswith("May I call pay(amount=7)?")
            async with hosting():
                done = await client.send("yes", task_id=asked.id)
        assert (text_of(done), ledger.calls) == (["so: paid 7"], [7])
        told = await run_in_thread(tools_told, asked.id)
        about = [(kind, one.get("name") or one["content"]) for e in told for kind, one in e.items()]
        assert about == [
            ("toolCall", "payer"),
            ("toolCall", "pay"),
            ("toolResult", "paid 7"),
            ("toolResult", "paid 7"),
        ]
        used = await usage_of(done)
        assert used["scripted"]["requests"] == model.counts["requests"] == 4

    async def test_so_does_an_agent_that_was_handed_over_to(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        payer = OPENAI_AGENTS.make(model, approved=[ledger.pay]).clone(name="Payer")
        with hosted(OPENAI_AGENTS.make(model, handoffs=[payer])) as agent:
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

        with hosted(OPENAI_AGENTS.make(model, tools=[pay])) as agent:
            async with hosting():
                client = Client(agent)
                assert text_of(await client.send('CALL pay {"amount": 7}\nSAY ok')) == ["ok"]
                asked = await client.send("CALL pay {}\nSAY never")
        assert (asked.status.state.word, ledger.calls) == ("input-required", [7])


class TestTrouble:
    async def test_a_tool_that_breaks_is_told_to_the_model_as_in_the_framework(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        tool = function_tool(ledger.break_down)
        strict = function_tool(
            ledger.break_down, name_override="strict", failure_error_function=None
        )
        with hosted(OPENAI_AGENTS.make(model, tools=[tool, strict])) as agent:
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
        with hosted(OPENAI_AGENTS.make(model, ledger.add), max_turns=2) as agent:
            async with hosting():
                task = await Client(agent).send('CALL add {"a": 1, "b": 2}')
        assert status_text(task) == "This message needs more of the model than one message may use."
        assert model.counts["requests"] == 2

    async def test_a_guardrail_is_a_run_within_and_stops_the_agent(
        self, model: ModelServer
    ) -> None:
        judge = Agent("Judge", model=OPENAI_AGENTS.model(model, "judge"))

        @input_guardrail
        async def is_fine(wrapper: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
            found = await Runner.run(judge, "SAY fine")
            return GuardrailFunctionOutput(found.final_output, "bad" in str(given))

        with hosted(OPENAI_AGENTS.make(model, input_guardrails=[is_fine])) as agent:
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
            with hosted(OPENAI_AGENTS.make(model), exports_traces=asked) as agent:
                async with hosting():
                    await Client(agent).send("SAY hello")
        finally:
            set_trace_processors([])
        assert traces.names == names

    async def test_models_are_named_by_a_provider_of_the_run(self, model: ModelServer) -> None:
        client = OPENAI_AGENTS.model(model)._client
        provider = MultiProvider(openai_client=client, openai_use_responses=False)
        config = RunConfig(model_provider=provider, model_settings=ModelSettings(temperature=0))
        with hosted(Agent("Helper", model="named"), run_config=config) as agent:
            async with hosting():
                task = await Client(agent).send("SAY hello")
        assert text_of(task) == ["hello"]
        assert list(await usage_of(task)) == ["named"]


class TestAnotherAttempt:
    async def test_knows_who_was_handed_over_to_and_which_call_failed(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        expert = Agent("Expert", model=OPENAI_AGENTS.model(model, "expert"))
        script = "SAY first + CALL break_down\nCALL transfer_to_expert\nSAY third WAIT and last"
        with hosted(OPENAI_AGENTS.make(model, ledger.break_down, handoffs=[expert])) as agent:
            async with hosting():
                client = Client(agent)
                task = await client.begin(script)
                await until(lambda: has_said(client, task.id, "third"))
                await run_in_thread(take_away, task.id)
                await until(lambda: model.of("left"))
                model.release()
                await until(lambda: client_state(client, task.id, "completed"))
                assert text_of(await client.get(task.id)) == ["first", "third and last"]
        assert [one.line for one in model.exchanges] == [0, 1, 2, 2]
        assert ledger.calls == ["broken"]
        used = await usage_of(task)
        assert {name: one["requests"] for name, one in used.items()} == {
            "scripted": 2,
            "expert": 1,
        }

    async def test_agents_that_are_tools_take_steps_of_their_own_side_by_side(
        self, model: ModelServer, ledger: Ledger
    ) -> None:
        worker = OPENAI_AGENTS.make(model, ledger.add).as_tool("worker", "Works")
        within = '"CALL add {{\\"a\\": {0}, \\"b\\": {0}}}\\nSAY $RESULT"'
        calls = " + ".join(f'CALL worker {{"input": {within.format(n)}}}' for n in (1, 2))
        with hosted(OPENAI_AGENTS.make(model, tools=[worker])) as agent:
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
