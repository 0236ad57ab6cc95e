"""Agents of pydantic-ai in a host, with a model that counts its requests: real classes, unchanged."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import (
    BinaryContent,
    CallDeferred,
    FilePart,
    FunctionToolset,
    ModelRequest,
    ModelResponse,
    RunContext,
    TextPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from a2a_tasks.agents import Part, Turn, data, file
from tests.model_server import ModelServer
from tests.support.execution.host import Client, hosting
from tests.support.frameworks import hosted, question_of, send_parts, status_text, text_of, trace
from tests.support.model_frameworks import PYDANTIC_AI, City, Ledger

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]


class TestContent:
    async def test_an_output_that_the_agent_changes_is_an_artifact_of_its_own(
        self, model: ModelServer
    ) -> None:
        thing = PYDANTIC_AI.make(model)
        thing.output_validator(lambda said: said.upper())
        with hosted(thing) as agent:
            async with hosting():
                assert text_of(await Client(agent).send("SAY quiet")) == ["quiet", "QUIET"]

    async def test_a_structured_output_is_data_with_its_schema(self, model: ModelServer) -> None:
        with hosted(PYDANTIC_AI.make(model, output_type=City)) as agent:
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

        with hosted(PYDANTIC_AI.make(model, who)) as agent:
            async with hosting():
                task = await Client(agent).send("CALL who\nSAY you are $RESULT")
        assert text_of(task) == ["you are user:alice"]


class TestApproval:
    async def test_an_approval_may_change_the_arguments_and_the_client_may_be_the_tool(
        self, model: ModelServer
    ) -> None:
        ledger = Ledger()
        thing = PYDANTIC_AI.make(model, approved=[ledger.pay])

        @thing.tool_plain
        def look(where: str) -> str:
            raise CallDeferred

        with hosted(thing) as agent:
            async with hosting():
                client = Client(agent)
                script = 'CALL pay {"amount": 7} + CALL look {"where": "here"}\nSAY $RESULT'
                asked = await client.send(script)
                text, about, _ = question_of(asked)
                assert text == (
                    "May I call pay(amount=7)?\n"
                    'Please run look(where="here") and answer with its result.'
                )
                pay, found = (call["id"] for call in about["calls"])
                answer = {pay: {"approved": True, "arguments": {"amount": 9}}, found: "a key"}
                done = await send_parts(client, data(answer), task_id=asked.id)
        assert (text_of(done), ledger.calls) == (["a key"], [9])


class TestTrouble:
    @pytest.mark.parametrize("fault", [KeyError, TimeoutError])
    async def test_a_tool_that_breaks_fails_the_run_as_in_the_framework(
        self, model: ModelServer, fault: type[Exception]
    ) -> None:
        def break_down() -> str:
            raise fault("elsewhere")

        with hosted(PYDANTIC_AI.make(model, break_down)) as agent:
            async with hosting():
                task = await Client(agent).send("CALL break_down\nSAY never")
        assert status_text(task) == "The agent failed."
        assert f"{fault.__name__}: " in await trace()


class TestChecks:
    def test_toolsets_need_an_id(self) -> None:
        toolset = FunctionToolset([Ledger().add])
        thing = PydanticAgent("test", toolsets=[toolset])
        with hosted(thing) as agent:
            (fault,) = agent.check()
        assert fault.id == "a2a_tasks.E051"
        assert "need to have a unique `id`" in fault.msg

    def test_it_needs_a_model(self) -> None:
        with hosted(PydanticAgent()) as agent:
            (fault,) = agent.check()
        assert "needs to have a `model`" in fault.msg
