"""Any sequence of changes, turn after turn, with turns that fail, die or are written twice, against dictionaries."""

from __future__ import annotations

import asyncio
import itertools
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from a2a_tasks.agents.author_errors import Unused
from a2a_tasks.execution.sources import StoredConversation
from a2a_tasks.models import ConversationItem, ConversationList
from a2a_tasks.protocol.values import TaskState
from a2a_tasks.store import cancel
from a2a_tasks.store.append import append
from a2a_tasks.store.db import run_in_thread
from a2a_tasks.store.records import LeaseLost, RunEnd
from tests.support.store.world import ALICE, Pen, held, status
from tests.support.thorough import examples

KEYS = st.sampled_from(["a", "b"])
VALUES = st.none() | st.integers(0, 9) | st.text("xy\x00ü", max_size=3) | st.binary(max_size=3)
ITEMS = st.lists(st.integers(0, 99) | st.text("xy", max_size=2), max_size=3)
CHANGES = st.one_of(
    st.tuples(st.just("get"), KEYS),
    st.tuples(st.just("set"), KEYS, VALUES),
    st.tuples(st.just("delete"), KEYS),
    st.tuples(st.just("items"), KEYS, st.none() | st.integers(0, 4)),
    st.tuples(st.just("append"), KEYS, ITEMS),
    st.tuples(st.just("pop"), KEYS),
    st.tuples(st.just("clear"), KEYS),
)
#: How a turn ends: it is kept, raises, is fenced off, or is written twice.
TURNS = st.lists(
    st.tuples(
        st.lists(CHANGES, max_size=6), st.sampled_from(["kept", "raised", "fenced", "twice"])
    ),
    max_size=6,
)
_numbers = itertools.count(1)


class Model:
    """What we believe is kept."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.lists: dict[str, list[Any]] = {}

    def do(self, name: str, key: str, *given: Any) -> Any:
        """Do one thing, and return what it tells."""
        items = self.lists.setdefault(key, [])
        match name, *given:
            case "get", *_:
                return self.values.get(key, "none")
            case "set", value:
                self.values[key] = value
            case "delete", *_:
                self.values.pop(key, None)
            case "items", limit:
                return items[-limit:] if limit else ([] if limit == 0 else list(items))
            case "append", added:
                items += added
            case "pop", *_:
                return items.pop() if items else None
            case "clear", *_:
                items.clear()
        return None


async def do(conversation: StoredConversation, name: str, key: str, *given: Any) -> Any:
    """Do the same as an agent does."""
    match name, *given:
        case "get", *_:
            return await conversation.memory.get(key, "none")
        case "set", value:
            return await conversation.memory.set(key, value)
        case "delete", *_:
            return await conversation.memory.delete(key)
        case "append", added:
            return await conversation.append(key, *added)
        case "items", limit:
            return await conversation.items(key, limit)
        case _:
            return await getattr(conversation, name)(key)


async def live(turns: list[tuple[list[tuple[Any, ...]], str]]) -> None:
    """Live the turns of one conversation."""
    context, model = f"talk-{next(_numbers)}", Model()
    for changes, end in turns:
        before = deepcopy(model)
        run = await run_in_thread(held, f"task-{next(_numbers)}", context_id=context)
        conversation = StoredConversation(run)
        conversation.join(asyncio.get_running_loop(), Unused())
        for change in changes:
            assert await do(conversation, *change) == model.do(*change)
        if end == "fenced":
            await run_in_thread(cancel.cancel, ALICE, run.task_id)
        event, row = status(TaskState.COMPLETED)
        changed = None if end == "raised" else conversation.list_changes()
        batch = Pen(run).batch(event, status=row, end=RunEnd(), after=0, conversation=changed)
        if end == "fenced":
            with pytest.raises(LeaseLost):
                await run_in_thread(append, batch)
        else:
            await run_in_thread(append, batch)
        if end == "twice":
            batch.come_again()
            await run_in_thread(append, batch)
        if end in {"raised", "fenced"}:
            model = before
    await compare(context, model)


async def compare(context: str, model: Model) -> None:
    """What the next turn reads is what we believe."""
    run = await run_in_thread(held, f"task-{next(_numbers)}", context_id=context)
    reader = StoredConversation(run)
    reader.join(asyncio.get_running_loop(), Unused())
    for key in ("a", "b"):
        assert await reader.memory.get(key, "none") == model.values.get(key, "none")
        assert await reader.items(key) == model.lists.get(key, [])
    await run_in_thread(look_at_rows, context)


def look_at_rows(context: str) -> None:
    """The numbers of items have no gap, and the lists know their sizes."""
    for row in ConversationList.objects.filter(context__public_id=context):
        items = ConversationItem.objects.filter(list=row).order_by("number")
        found = list(items.values_list("number", "value"))
        assert [number for number, _ in found] == list(range(1, row.count + 1))
        assert row.size == sum(len(value.encode()) for _, value in found)


@pytest.mark.django_db
@given(TURNS)
@settings(
    max_examples=examples(300, quick=15),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
async def test_a_conversation_is_a_dictionary_that_forgets_turns_that_did_not_end(
    turns: list[tuple[list[tuple[Any, ...]], str]],
) -> None:
    await live(turns)
