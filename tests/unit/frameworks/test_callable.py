"""Functions of every kind as agents, and objects that are called as LangChain's runnables are."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from langchain_core.exceptions import ModelRateLimitError, OutputParserException
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import JsonOutputParser
from langchain_core.runnables import RunnableGenerator, RunnableLambda, RunnableParallel
from pydantic import BaseModel

from a2a_frameworks.callable import CallableAgent
from a2a_tasks.agents import AgentError, Turn
from a2a_tasks.agents.emission import Chunk, Emission, StatusUpdate
from a2a_tasks.protocol.values import TaskState
from tests.support.examples.turns import heard, make_turn, shown_text


@dataclass
class Said:
    """A message or a piece of one, as LangChain has them."""

    content: Any


async def coroutine(text: str) -> str:
    return text.upper()


async def coroutine_with_turn(text: str, turn: Turn) -> Any:
    return turn.ask(f"{text}?")


async def generator(text: str) -> AsyncIterator[str]:
    for word in text.split():
        yield word


def plain(text: str) -> str:
    return f"{text} in {threading.current_thread().name.partition('-')[0]}"


def words(text: str) -> Iterator[Any]:
    for word in text.split():
        yield Said(word)


def agent(function: Any) -> CallableAgent:
    """An agent of the function."""

    class Called(CallableAgent, abstract=True):
        pass

    Called.function = function
    return Called()


async def texts(function: Any, text: str = "two words") -> list[str]:
    """What the agent says."""
    return [shown_text(said.parts) for said in await heard(agent(function), make_turn(text))]


class Streaming:
    """A runnable that streams."""

    async def astream(self, text: str, config: Any = None, **options: Any) -> AsyncIterator[Said]:
        """Say nothing first, as models do."""
        yield Said("")
        for word in text.split():
            yield Said([{"type": "text", "text": word}])


class Asked:
    """A runnable that answers at once."""

    async def ainvoke(self, text: str) -> Said:
        """Answer."""
        return Said(text.upper())


class Blocking:
    """A runnable that is not asynchronous."""

    def invoke(self, text: str) -> str:
        """Answer."""
        return plain(text)


class Called:
    """An object that is called."""

    async def __call__(self, text: str) -> str:
        """Answer."""
        return text.upper()


class TestKinds:
    @pytest.mark.parametrize(
        ("function", "said"),
        [
            (coroutine, ["TWO WORDS"]),
            (generator, ["two", "words"]),
            (plain, ["two words in agent"]),
            (words, ["two", "words"]),
            (lambda text: coroutine(text), ["TWO WORDS"]),
            (lambda text: generator(text), ["two", "words"]),
            (partial(coroutine), ["TWO WORDS"]),
            (Called(), ["TWO WORDS"]),
            (Streaming(), ["two", "words"]),
            (Streaming().astream, ["two", "words"]),
            (Asked(), ["TWO WORDS"]),
            (Blocking(), ["two words in agent"]),
            (lambda text: None, []),
        ],
    )
    async def test_each_says_what_it_returns(self, function: Any, said: list[str]) -> None:
        assert await texts(function) == said
        assert list(agent(function).check())[3:] == []

    async def test_one_that_names_the_turn_gets_it(self) -> None:
        (said,) = await heard(agent(coroutine_with_turn), make_turn("Why"))
        assert said == StatusUpdate(TaskState.INPUT_REQUIRED, said.parts)
        assert shown_text(said.parts) == "Why?"

    async def test_other_arguments_keep_their_defaults(self) -> None:
        def warm(text: str, temperature: float = 0.5) -> str:
            return f"{text} {temperature}"

        assert await texts(warm) == ["two words 0.5"]

    async def test_a_function_may_stand_in_the_class_or_be_static(self) -> None:
        class Plain(CallableAgent, abstract=True):
            function = coroutine

        class Static(CallableAgent, abstract=True):
            function = staticmethod(coroutine)

        for made in (Plain(), Static()):
            assert [shown_text(s.parts) for s in await heard(made, make_turn("a"))] == ["A"]

    async def test_pieces_are_one_artifact(self) -> None:
        said: list[Emission] = await heard(agent(generator), make_turn("two words"))
        chunks = [chunk for chunk in said if isinstance(chunk, Chunk)]
        assert [(c.artifact_id, c.append) for c in chunks] == [("answer", False), ("answer", True)]


class Article(BaseModel):
    """A structured output."""

    title: str
    content: str = "long"


async def spell(texts: AsyncIterator[str]) -> AsyncIterator[str]:
    async for text in texts:
        for word in text.split():
            yield word


async def write_json(texts: AsyncIterator[str]) -> AsyncIterator[str]:
    async for _ in texts:
        for piece in ('{"a":', ' 1, "b"', ": [2", ", 3]}"):
            yield piece


async def states(text: str) -> AsyncIterator[Any]:
    for word in text.split():
        yield {"word": word}


class TestData:
    @pytest.mark.parametrize(
        ("function", "said"),
        [
            (lambda text: {"text": text}, [{"text": "two words"}]),
            (lambda text: Article(title=text), [{"title": "two words", "content": "long"}]),
            (RunnableLambda(lambda text: {"text": text}), [{"text": "two words"}]),
            (
                RunnableLambda(lambda text: Article(title=text)),
                [{"title": "two words", "content": "long"}],
            ),
            (
                RunnableParallel(words=RunnableGenerator(spell), length=RunnableLambda(len)),
                [{"words": "twowords", "length": 9}],
            ),
            (RunnableGenerator(write_json) | JsonOutputParser(), [{"a": 1, "b": [2, 3]}]),
            (states, [{"word": "two"}, {"word": "words"}]),
        ],
        ids=["dict", "model", "runnable", "runnable of a model", "sum", "last", "generator"],
    )
    async def test_dicts_and_models_are_data(self, function: Any, said: list[Any]) -> None:
        emissions = await heard(agent(function), make_turn("two words"))
        chunks = [one for one in emissions if isinstance(one, Chunk)]
        assert [part.data for chunk in chunks for part in chunk.parts] == said

    async def test_a_message_is_its_text(self) -> None:
        assert await texts(RunnableLambda(lambda text: AIMessage(text))) == ["two words"]


class TestErrorsOfModels:
    @pytest.mark.parametrize("kind", ["generator", "words", "coroutine", "plain"])
    async def test_become_words_for_people_and_others_stay_as_they_are(self, kind: str) -> None:
        fault: list[Exception] = [ModelRateLimitError("429"), OutputParserException("no JSON")]

        async def later(text: str) -> str:
            raise fault[0]

        def at_once(text: str) -> str:
            raise fault[0]

        async def each_later(text: str) -> AsyncIterator[str]:
            yield text
            raise fault[0]

        def each(text: str) -> Iterator[str]:
            yield text
            raise fault[0]

        kinds = {"generator": each_later, "words": each, "coroutine": later, "plain": at_once}
        function = kinds[kind]
        with pytest.raises(AgentError, match="The model is busy"):
            await texts(function)
        fault.pop(0)
        with pytest.raises(AgentError, match="an answer that cannot be used"):
            await texts(function)
        fault[0] = KeyError("own")
        with pytest.raises(KeyError, match="own"):
            await texts(function)


class TestMistakes:
    @pytest.mark.parametrize("kind", ["coroutine", "generator"])
    async def test_a_value_that_nobody_can_say_is_named_with_its_line(self, kind: str) -> None:
        async def answer(text: str) -> Any:
            return {1}

        async def answers(text: str) -> AsyncIterator[Any]:
            yield {1}

        with pytest.raises(TypeError, match="set cannot be content") as raised:
            await texts(answer if kind == "coroutine" else answers)
        assert "test_callable.py:" in raised.value.__notes__[0]

    async def test_generators_are_closed_when_nobody_listens_any_more(self) -> None:
        closed: list[str] = []

        async def endless(text: str) -> AsyncIterator[str]:
            try:
                while True:
                    yield text
            finally:
                closed.append(text)

        running = agent(endless).run(make_turn("x"))
        assert await anext(running) == "x"
        await running.aclose()
        assert closed == ["x"]

    @pytest.mark.parametrize(
        ("function", "fault"),
        [
            (None, "function is no function, and has none of astream, ainvoke, invoke"),
            ("text", "function is no function"),
            (lambda: "x", "function cannot be called with a text"),
            (lambda text, other: "x", "function cannot be called with a text"),
        ],
    )
    def test_a_check_finds_what_cannot_be_called(self, function: Any, fault: str) -> None:
        (found,) = [check for check in agent(function).check() if check.id == "a2a_tasks.E051"]
        assert found.msg.startswith(fault)
        assert found.hint == "function = ..., or def build(self, turn)"
