"""Runnables of LangChain in a host, with a model that counts its requests."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from langchain_core.output_parsers import JsonOutputParser

from tests.model_server import ModelServer
from tests.support.execution.host import Client, hosting
from tests.support.frameworks import hosted, status_text, text_of, trace
from tests.support.model_frameworks import LANGGRAPH, City

pytestmark = [pytest.mark.django_db, pytest.mark.quick_on("sqlite")]


class Waiting:
    """A model that does not stream."""

    def __init__(self, model: Any) -> None:
        self.ainvoke = model.ainvoke


class TestModels:
    @pytest.mark.parametrize("kind", [None, Waiting])
    async def test_answer_or_fail_in_words_for_people_with_a_trace_for_operators(
        self, model: ModelServer, kind: Any
    ) -> None:
        asked = LANGGRAPH.model(model)
        with hosted(kind(asked) if kind else asked) as agent:
            async with hosting():
                client = Client(agent)
                assert text_of(await client.send("SAY one two")) == ["one two"]
                for script, words in [
                    ("FAIL 429", "The model is busy. Please try again later."),
                    ("FAIL 401", "The model cannot be used at present."),
                    ("FAIL 500", "The model did not answer. Please try again later."),
                ]:
                    task = await client.send(script)
                    assert (task.status.state.word, status_text(task)) == ("failed", words)
                    assert "langchain" in await trace()

    async def test_with_a_structured_output_answer_with_data(self, model: ModelServer) -> None:
        asked = LANGGRAPH.model(model)
        structured = asked.with_structured_output(City, method="function_calling")
        with hosted(structured) as agent, hosted(Waiting(asked | JsonOutputParser())) as waiting:
            async with hosting():
                done = await Client(agent).send('CALL City {"name": "Bern", "people": 7}')
                failed = await Client(waiting).send("SAY no JSON")
        (artifact,) = map(msgspec.json.decode, done.artifacts or ())
        (part,) = artifact["parts"]
        assert part["data"] == {"name": "Bern", "people": 7}
        assert status_text(failed) == "The model gave an answer that cannot be used."
