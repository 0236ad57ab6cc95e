"""The checkpointer of a turn: LangGraph's own conformance suite, and what is kept."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any
from uuid import uuid4

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.graph import START, MessagesState, StateGraph

from a2a_frameworks.langgraph.output import GraphOutput
from a2a_frameworks.langgraph.saver import TurnSaver, Value, _compare, _restore
from a2a_tasks.agents import Journal
from a2a_tasks.agents.emission import Chunk, ToolEvent
from tests.support.examples.turns import make_turn

THREAD: Any = {"configurable": {"thread_id": "1"}}


def saver_of(journal: Journal) -> TurnSaver:
    """The checkpointer of another attempt of a turn."""
    return TurnSaver(make_turn("hi", journal=journal), GraphOutput(0, (), 300))


def reread(journal: Journal) -> Journal:
    """The journal as another attempt finds it."""
    return Journal({name: msgspec.json.decode(result) for name, result in journal.results.items()})


class Forgetful(TurnSaver):
    """A checkpointer that reads all it knows from the journal, before each read."""

    async def _reread(self) -> TurnSaver:
        again = saver_of(reread(self._turn._journal))
        await again.replay()
        return again

    async def aget_tuple(self, config: Any) -> Any:
        """Read a checkpoint."""
        return (await self._reread()).get_tuple(config)

    async def alist(self, config: Any, **about: Any) -> AsyncIterator[Any]:
        """Read checkpoints."""
        for found in (await self._reread()).list(config, **about):
            yield found


@checkpointer_test(name="TurnSaver")
async def forgetful() -> AsyncIterator[BaseCheckpointSaver[str]]:
    """A checkpointer for the suite."""
    yield Forgetful(make_turn("hi", journal=Journal()), GraphOutput(0, (), 300))


async def test_it_passes_the_conformance_suite_of_langgraph_with_what_its_steps_hold() -> None:
    report = await validate(forgetful)
    failures = [failure for result in report.results.values() for failure in result.failures or ()]
    assert failures == []
    assert report.passed_all_base()


@given(st.lists(st.binary(max_size=300), max_size=40), st.integers(0, 40), st.binary(max_size=300))
def test_a_difference_restores_the_value(items: list[bytes], kept: int, more: bytes) -> None:
    old, new = (msgspec.msgpack.encode(x) for x in (items, [*items[:kept], more]))
    for before, after in ((old, new), (new, old), (b"", new), (new, b"")):
        value = Value("c", "1", "msgpack", *_compare(before, after))
        assert _restore(before, value) == after


async def test_the_steps_of_a_long_conversation_hold_only_what_is_new() -> None:
    def answer(state: MessagesState) -> Any:
        return {"messages": [AIMessage("fine")]}

    async def turn_after(snapshot: bytes) -> tuple[TurnSaver, Mapping[str, str]]:
        journal = Journal()
        saver = saver_of(journal)
        if snapshot:
            saver.load(snapshot, "1")
        graph = StateGraph(MessagesState).add_node(answer).add_edge(START, "answer")
        said: Any = {"messages": [HumanMessage("x" * 1000)]}
        await graph.compile(saver).ainvoke(said, THREAD, durability="sync")
        return saver, journal.results

    snapshot, sizes = b"", []
    for _ in range(12):
        saver, results = await turn_after(snapshot)
        snapshot = saver.dump("1", ())
        sizes.append(sum(map(len, results.values())))
    assert len(snapshot) > 12 * 1000
    assert max(sizes) < sizes[0] * 1.2
    assert msgspec.msgpack.decode(snapshot)[0][3] == max(saver.storage["1"][""])


async def test_a_call_is_told_when_the_answer_that_asks_for_it_is_kept() -> None:
    """A process that dies before loses the answer: the model is asked again, and its calls have other ids."""
    output, run = GraphOutput(0, (), 300), uuid4()
    call: Any = {"name": "add", "args": {}, "id": "c1"}
    about = {"langgraph_node": "speak", "langgraph_checkpoint_ns": "speak:1"}
    output.on_chain_start(None, {}, run_id=run, name="speak", metadata=about)
    output.on_chain_end({"messages": [AIMessage("hi", tool_calls=[call])]}, run_id=run)
    output.tell_calls(lambda node: node == "other:1")
    output.put(Chunk(artifact_id="later", parts=()))
    output.tell_calls(lambda node: node == "speak:1")
    told = [await output.next() for _ in range(3)]
    assert [type(one) for one in told] == [Chunk, Chunk, ToolEvent]
